"""Inputs: all that a plan follows from; exactly what `dump` writes and `replay` reads."""

from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Key, Observed, ObservedDelta, Replica, difference
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Outcome
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.problem import Problem


class Inputs(msgspec.Struct, frozen=True, dict=True):
    """The same inputs give the same plan, byte for byte."""

    desired: Desired
    observed: Observed
    now: Instant
    memory: Memory = Memory()
    hints: Hints = Hints()
    budget: int = 1_000_000  # predicate evaluations that the planners may spend
    prune: tuple[str, ...] = ()  # titles of objects that a person agreed to lose: NodePool/old

    @cached_property
    def unowned_node_pools(self) -> frozenset[str]:
        """Names of NodePools that are there, and that these policies neither made nor adopted: somebody else's, or kept
        by another environment."""
        return frozenset(each.name for each in self.observed.node_pools if not self._is_owned(each))

    def _is_owned(self, node_pool: Unstructured) -> bool:
        keeper = node_pool.metadata.annotations.get(names.ENVIRONMENT, self.desired.environment)
        return node_pool.is_ours and keeper == self.desired.environment


# --- Inputs after inputs: each told by what is different from those before, so that it costs no more than what changed.


class Successor(msgspec.Struct, frozen=True, omit_defaults=True):
    """What makes the next inputs of those before; the first are told by what differs from nothing."""

    inputs: Inputs  # whole, but for what is observed and perhaps the policies
    gone: dict[str, tuple[Key, ...]] = {}
    same_policies: bool = False


def successor(before: Inputs | None, after: Inputs) -> Successor:
    """Policies and objects count as the same only if they are the very same objects."""
    change = difference(before.observed if before else Observed(), after.observed)
    same = before is not None and before.desired is after.desired
    desired = Desired(after.desired.revision, after.desired.environment) if same else after.desired
    return Successor(msgspec.structs.replace(after, desired=desired, observed=change.put), change.gone, same)


class Succession:
    """Owner of the inputs as they are after what was told so far."""

    def __init__(self) -> None:
        self._replica = Replica()
        self._desired: Desired | None = None

    def take(self, delta: Successor) -> Inputs:
        """The next inputs; what did not change stays the same object. Raises ValueError where the first is missing."""
        desired = self._desired if delta.same_policies else delta.inputs.desired
        if desired is None:
            raise ValueError("the inputs before these are missing")
        self._desired = desired
        observed = self._replica.take(ObservedDelta(delta.inputs.observed, delta.gone))
        return msgspec.structs.replace(delta.inputs, desired=desired, observed=observed)


# --- What came of one cycle: what it went by, what was planned and done, and why more was not.


class CycleResult(msgspec.Struct, frozen=True):
    """Told to whoever publishes; a cycle that came to nothing says so."""

    at: Instant
    inputs: Inputs | None = None  # None: there was nothing to plan from
    plan: Plan | None = None
    outcomes: tuple[Outcome, ...] = ()  # of what was sent, in the order in which answers came
    trouble: str = ""  # a sentence: why nothing was done
    problems: tuple[Problem, ...] = ()  # of policies that were refused; those before them stay in force
    wake_at: Instant | None = None  # when to look again, though nothing changes
    unpublished: tuple[str, ...] = ()  # whoever could not tell of it, by a fault of ours
    spent_ms: tuple[tuple[str, int], ...] = ()  # what it did, in order, and how long each took
