"""The draft of a plan: the what-if fleet, the subjects claimed so far, and the capacity that is missing.

A subject has one action in a plan. The first planner that acts on a subject claims the subject; the actions of later
planners on the same subject are held until the next plan. A Label claims nothing: a Label is held if any planner has
another action on the same subject (guards/admission.py).
"""

from collections.abc import Iterable, Set
from functools import cached_property
from typing import Protocol

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Action, Decision, Delete, Hold, Label, Ref, Taint, node_ref
from reconciler.model.plan.feature_report import FeatureReport, Reporting
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.plan.capacity.demand import GangIndex
from reconciler.plan.capacity.requests import Requests, SmartPodIdentity
from reconciler.plan.capacity.wanted_nodes import CapacityAnswer


class Draft:
    """State that one planner leaves for the next. Mutable."""

    def __init__(self, fleet: Fleet, desired: Desired) -> None:
        self.fleet = fleet
        self.identity = SmartPodIdentity(desired)
        self.capacity = CapacityAnswer()
        self._claimed: dict[Ref, Decision] = {}
        self._labelled: set[Ref] = set()
        self.left_out: frozenset[str] = frozenset()  # pools that the current planner can't plan for
        self._taken_away: set[str] = set()
        self.migrating: frozenset[str] = frozenset()  # uids of pods that the pressure planner moves

    def begin(self) -> CapacityAnswer:
        """The part of the draft that a planner may change directly, before the planner runs. Clears the pools that
        were left out. Claims are made by guards/admission.py.
        """
        self.left_out = frozenset()
        return self.capacity

    def restore(self, capacity: CapacityAnswer) -> None:
        """Undo everything that a planner did to the draft and the fleet before the planner raised."""
        self.capacity = capacity
        self.migrating = frozenset()
        self.fleet.renew()
        for each in ("requests", "gangs"):
            self.__dict__.pop(each, None)

    def leave_out(self, pool: str) -> None:
        """Leave a pool out for the rest of this planner's run."""
        self.left_out |= {pool}

    @cached_property
    def requests(self) -> Requests:
        """Capacity requests of smart pods."""
        return Requests(self.fleet, self.identity)

    @cached_property
    def gangs(self) -> GangIndex:
        """Gangs: pods that start together or not at all."""
        return GangIndex(self.fleet.observed)

    @property
    def has_claims(self) -> bool:
        """Whether any planner has claimed a subject yet."""
        return bool(self._claimed)

    def claimed_by(self, subject: Ref) -> str:
        """Name of the planner that claimed the subject; empty if nobody did."""
        decision = self._claimed.get(subject)
        return decision.planner if decision is not None else ""

    def act_on(self, subject: Ref) -> Action | Hold | None:
        """Action of the planner that claimed the subject; None if nobody did."""
        decision = self._claimed.get(subject)
        return decision.act if decision is not None else None

    def leaves(self, node: Node) -> bool:
        """Whether the node is being removed once the actions of earlier planners are carried out. Report-only actions
        do not count. A node that already has a removal taint and is deleted in this plan is one node.
        """
        decision = self._claimed.get(node_ref(node)) if self._claimed else None
        if decision is None or decision.would:
            return node.is_being_removed
        return leaves_after(decision.act, node)

    @property
    def claims(self) -> Iterable[Decision]:
        """Decisions that claim a subject."""
        return self._claimed.values()

    def is_labelled(self, subject: Ref) -> bool:
        """Whether a planner puts labels on the subject already."""
        return subject in self._labelled

    def takes_away(self, node: str) -> bool:
        """Whether a planner deletes the node, or puts a taint on the node that begins its removal."""
        return node in self._taken_away

    @property
    def taken_away(self) -> Set[str]:
        """Names of the nodes that planners delete, or begin to remove."""
        return self._taken_away

    def claim(self, decision: Decision) -> None:
        """Claim the subject of an action for the rest of this plan. Labels claim nothing."""
        if isinstance(decision.act, Label):
            self._labelled.add(decision.subject)
            return
        self._claimed.setdefault(decision.subject, decision)
        if takes_node_away(decision):
            self._taken_away.add(decision.subject.name)


def takes_node_away(decision: Decision) -> bool:
    """Whether the action deletes a node, or puts a taint on the node that begins its removal."""
    act = decision.act
    begins = isinstance(act, Taint) and act.key in names.TAKING and act.value is not None
    return decision.subject.kind == "Node" and (begins or isinstance(act, Delete))


def leaves_after(act: Action | Hold | None, node: Node) -> bool:
    """Whether a node is being removed after an action on the node."""
    match act:
        case Delete():
            return True
        case Taint(key=key, value=value) if key in names.TAKING:
            return value is not None
        case _:
            return node.is_being_removed


class Verdict(msgspec.Struct, Reporting, frozen=True):
    """Result of one planner."""

    decisions: tuple[Decision, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    memory: Memory | None = None  # None: unchanged
    wake_at: Instant | None = None
    reports: tuple[FeatureReport, ...] = ()
    hints: Hints | None = None


class Planner(Protocol):
    """Pure function from inputs and draft to a verdict. Reports bad cluster state as holds, and never raises."""

    def __call__(self, inputs: Inputs, draft: Draft) -> Verdict: ...
