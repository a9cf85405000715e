"""Inputs: all data that determines a plan; the format of `dump` and `replay`."""

from functools import cached_property
from typing import Literal

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Key, Observed, ObservedDelta, Replica, difference
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Outcome
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.plan.pressure import PressureState
from reconciler.model.problem import Problem

# What binds pods with a GpuClaim: a second kube-scheduler that asks the extender, or the gpu planner.
ClaimScheduler = Literal["external", "builtin"]


class Inputs(msgspec.Struct, frozen=True, dict=True):
    """The same inputs give the same plan, byte for byte."""

    desired: Desired
    observed: Observed
    now: Instant
    memory: Memory = Memory()
    hints: Hints = Hints()
    budget: int = 1_000_000  # maximum number of predicate evaluations by the planners
    prune: tuple[str, ...] = ()  # titles of objects whose deletion a person accepted: NodePool/old
    scheduler: ClaimScheduler = "external"
    pressure: PressureState | None = None  # None: nobody answers the agents of elastic pods

    @cached_property
    def unowned_node_pools(self) -> frozenset[str]:
        """Names of existing NodePools that these policies neither created nor adopted.

        Such a NodePool belongs to others, or to another environment.
        """
        return frozenset(each.name for each in self.observed.node_pools if not self._is_owned(each))

    def _is_owned(self, node_pool: Unstructured) -> bool:
        keeper = node_pool.metadata.annotations.get(names.ENVIRONMENT, self.desired.environment)
        return node_pool.is_ours and keeper == self.desired.environment


# --- Sequences of inputs: each is encoded as a delta to its predecessor, so that the size follows the changes.


class Successor(msgspec.Struct, frozen=True, omit_defaults=True):
    """The delta from the previous inputs to the next; the first is a delta from nothing."""

    inputs: Inputs  # complete, except for observed objects, and possibly policies and what is reserved
    gone: dict[str, tuple[Key, ...]] = {}
    same_policies: bool = False
    same_pressure: bool = False


def successor(before: Inputs | None, after: Inputs) -> Successor:
    """Policies and objects count as unchanged only if they are identical Python objects; what is reserved, if it is
    equal.
    """
    change = difference(before.observed if before else Observed(), after.observed)
    same = before is not None and before.desired is after.desired
    desired = Desired(after.desired.revision, after.desired.environment) if same else after.desired
    is_reserved = before is not None and after.pressure is not None and before.pressure == after.pressure
    pressure = None if is_reserved else after.pressure
    inputs = msgspec.structs.replace(after, desired=desired, observed=change.put, pressure=pressure)
    return Successor(inputs, change.gone, same, is_reserved)


class Succession:
    """Owner of the current inputs, rebuilt from deltas."""

    def __init__(self) -> None:
        self._replica = Replica()
        self._desired: Desired | None = None
        self._pressure: PressureState | None = None

    def take(self, delta: Successor) -> Inputs:
        """Applies a delta and returns the next inputs; unchanged objects keep their identity.

        Raises ValueError if the first inputs are missing.
        """
        desired = self._desired if delta.same_policies else delta.inputs.desired
        if desired is None:
            raise ValueError("the previous inputs are missing")
        self._desired = desired
        self._pressure = self._pressure if delta.same_pressure else delta.inputs.pressure
        observed = self._replica.take(ObservedDelta(delta.inputs.observed, delta.gone))
        return msgspec.structs.replace(delta.inputs, desired=desired, observed=observed, pressure=self._pressure)


# --- The result of a cycle: its inputs, plan, outcomes and errors.


class CycleResult(msgspec.Struct, frozen=True):
    """Passed to all publishers; also created for a cycle without a plan."""

    at: Instant
    inputs: Inputs | None = None  # None: there was nothing to plan from
    plan: Plan | None = None
    outcomes: tuple[Outcome, ...] = ()  # of the sent writes, in order of their responses
    trouble: str = ""  # a sentence: why nothing was done
    problems: tuple[Problem, ...] = ()  # of refused policies; the previous policies stay in force
    wake_at: Instant | None = None  # when to plan again without any change
    unpublished: tuple[str, ...] = ()  # publishers that failed, through a bug of reconciler
    spent_ms: tuple[tuple[str, int], ...] = ()  # steps in order, with the duration of each
