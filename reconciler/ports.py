"""What the loop asks of the world, in as few methods as will do; each says what it promises."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from reconciler.model.bundle import Bundle, Rendering, RenderRequest, Text
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Outcome
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.problem import Problem


class Declined(Exception):
    """A person, or what a saved plan presumes, speaks against the plan: no fault, and told by whoever asked for it."""


class Unavailable(Exception):
    """What was asked for is not to be had now; the sentence says why, for people. Nothing is done without it."""


class Source(Protocol):
    """Where policies come from."""

    def latest(self) -> Bundle:
        """The last good bundle. Never blocks; a bad or incomplete bundle never takes a good one's place."""
        ...


class Wished(msgspec.Struct, frozen=True):
    """What policies say, read, resolved and rendered."""

    desired: Desired | None  # the last good wish; None before the first
    problems: tuple[Problem, ...] = ()  # of what came after it, and was refused
    why: str = ""  # there is no wish, where no problem says it


class Policies(Protocol):
    """What is wished for."""

    def wish(self, cluster_uid: str) -> Wished:
        """The last good wish for this cluster, the same object while it is the same. Never blocks."""
        ...


class Renderer(Protocol):
    """Turns templates and values into text, whatever the templates try."""

    def render(self, templates: Sequence[Text], requests: Sequence[RenderRequest]) -> tuple[Rendering, ...]:
        """One rendering a request, in order. The same arguments give the same bytes; time and memory are bounded."""
        ...


class Fence(Protocol):
    """Whether one may still write: asked just before each write is sent."""

    def holds(self) -> bool:
        """False for good once leadership has run out."""
        ...


class Cluster(Protocol):
    """The cluster that is looked at and acted on."""

    def observe(self) -> Observed:
        """As last seen; the same object while nothing changed. Names the kinds that could not be read. Never waits."""
        ...

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        """Carries out all that are neither holds nor `would`, each on its own; one outcome each, as they come."""
        ...


class VersionedMemory(msgspec.Struct, frozen=True):
    """A memory, and the version that it was read or written at."""

    memory: Memory
    version: str = ""


class Stale(Exception):
    """Someone else wrote since it was read."""


class MemoryStore(Protocol):
    """Where the memory outlives a restart."""

    def load(self) -> VersionedMemory:
        """What was saved last; an empty memory where nothing was. Raises Unavailable."""
        ...

    def save(self, memory: Memory, after: VersionedMemory) -> VersionedMemory:
        """All of it or nothing. Raises Stale where what stands is not `after`; Unavailable, and then it may stand."""
        ...


class PlanService(Protocol):
    """Where plans are made: in process, or by a child."""

    def plan(self, inputs: Inputs) -> Plan:
        """Checked already. Raises BrokenInvariant; Unavailable where no plan could be made."""
        ...


class Publisher(Protocol):
    """Whoever is told what came of each cycle: statuses, metrics, logs."""

    def publish(self, cycled: CycleResult) -> None:
        """Never raises: what can't be told now is told the next time."""
        ...


class Clock(Protocol):
    """The hour, and waiting."""

    def now(self) -> Instant: ...

    def wait(self, until: Instant | None) -> None:
        """Until then, or until something wakes it; None: only until something does."""
        ...
