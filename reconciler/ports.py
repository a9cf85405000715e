"""Protocols between the loop and the outside: policies, the cluster, the memory, the planner, and the clock."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from reconciler.model.bundle import Bundle
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Outcome
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.problem import Problem


class Declined(Exception):
    """The plan is declined by a person, or no longer fits its saved plan. Not an error; the caller reports it."""


class Unavailable(Exception):
    """The requested object is not available now; the message says why. Nothing is done without the object."""


class Source(Protocol):
    """Source of policies."""

    def latest(self) -> Bundle:
        """Return the last good bundle. Never blocks; a bad or incomplete bundle never replaces a good one."""
        ...

    @property
    def last_refused(self) -> Bundle | None:
        """The last bundle read, if it was not good."""
        ...


class Wished(msgspec.Struct, frozen=True):
    """Desired state: policies after reading, resolving and rendering."""

    desired: Desired | None  # the last good desired state; None before the first
    problems: tuple[Problem, ...] = ()  # problems of a newer bundle that was refused
    why: str = ""  # why there is no desired state, if no problem says why


class Policies(Protocol):
    """Desired state from the policies in force."""

    def wish(self, cluster_uid: str) -> Wished:
        """Return the last good desired state for the cluster; the same object while nothing changes. Never blocks."""
        ...


class Fence(Protocol):
    """Leadership check, made just before each write is sent."""

    def holds(self) -> bool:
        """Whether this replica may write. Once False, always False."""
        ...


class Cluster(Protocol):
    """The cluster: reads and writes."""

    def observe(self) -> Observed:
        """Return the last observation, with the kinds that could not be read. The same object while nothing changes.
        Never blocks.
        """
        ...

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        """Execute all decisions that are neither held nor suppressed, independently; yield one outcome for each."""
        ...


class VersionedMemory(msgspec.Struct, frozen=True):
    """A memory with its version in the store."""

    memory: Memory
    version: str = ""


class Stale(Exception):
    """The memory was changed by another writer since it was read."""


class MemoryStore(Protocol):
    """Persistent storage of the memory."""

    def load(self) -> VersionedMemory:
        """Return the saved memory, or an empty memory. Raises Unavailable."""
        ...

    def save(self, memory: Memory, after: VersionedMemory) -> VersionedMemory:
        """Save atomically. Raises Stale if the stored version is not `after`. After Unavailable the memory may be saved
        or not.
        """
        ...


class PlanService(Protocol):
    """Makes plans, in process or in a child process."""

    def plan(self, inputs: Inputs) -> Plan:
        """Return a plan whose invariants were checked. Raises BrokenInvariant, or Unavailable if there is no plan."""
        ...


class Publisher(Protocol):
    """Publishes the result of each cycle: status, metrics, logs."""

    def publish(self, cycled: CycleResult) -> Instant | None:
        """Publish the result of a cycle; returns when to publish again, if not only with the next change. Never raises:
        a result that cannot be published is published with the next.
        """
        ...


class Clock(Protocol):
    """Current time and waiting."""

    def now(self) -> Instant: ...

    def wait(self, until: Instant | None) -> None:
        """Wait until a time or a wake-up; None waits for a wake-up only."""
        ...
