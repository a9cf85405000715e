"""Owner of a plan in the making: the what-if fleet, the subjects claimed so far, and the capacity that is missing.

A subject has one action in a plan. The first planner that acts on a subject claims it; what a later planner would do to
the subject is held until the next plan. A label can wait: a Label claims nothing, and is held itself where any planner
does something else to the same subject (guards/admission.py).
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
from reconciler.model.plan.capacity import Purchase, Why
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Action, Decision, Delete, Hold, Label, Ref, Taint, node_ref
from reconciler.model.plan.evaluation import DrainEligibility, SizeEvaluation
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.plan.capacity.demand import GangIndex
from reconciler.plan.capacity.refusals import CapacityAnswer, WantedNode
from reconciler.plan.capacity.requests import Requests, SmartPodIdentity


class UnmetNodes(msgspec.Struct, frozen=True):
    """Nodes that a pool lacks, and that nobody has bought."""

    pool: str
    provisioner: str  # nothing where the pool has none
    nodes: int
    why: Why
    pods: tuple[Ref, ...] = ()  # of demand: whom they are for
    wanted: tuple[WantedNode, ...] = ()  # each of these nodes


class Checkpoint(msgspec.Struct, frozen=True):
    """What a planner may change of the draft by itself; claims are made at the door."""

    missing: tuple[UnmetNodes, ...]
    answered: CapacityAnswer


class Draft:
    """What one planner leaves for the next."""

    def __init__(self, fleet: Fleet, desired: Desired) -> None:
        self.fleet = fleet
        self.identity = SmartPodIdentity(desired)
        self.missing: list[UnmetNodes] = []
        self.answered = CapacityAnswer()
        self._claimed: dict[Ref, Decision] = {}
        self._labelled: set[Ref] = set()
        self.left_out: frozenset[str] = frozenset()  # pools for which the planner whose turn it is can't plan
        self._taken_away: set[str] = set()

    def checkpoint(self) -> Checkpoint:
        """Before a planner has its turn, with all pools."""
        self.left_out = frozenset()
        return Checkpoint(tuple(self.missing), self.answered)

    def restore(self, checkpoint: Checkpoint) -> None:
        """After a planner has raised: whatever it had begun with the draft and the fleet is gone."""
        self.missing, self.answered = list(checkpoint.missing), checkpoint.answered
        self.fleet.renew()
        for each in ("requests", "gangs"):
            self.__dict__.pop(each, None)

    def leave_out(self, pool: str) -> None:
        """For the rest of the planner's turn."""
        self.left_out |= {pool}

    @cached_property
    def requests(self) -> Requests:
        """What smart pods ask for."""
        return Requests(self.fleet, self.identity)

    @cached_property
    def gangs(self) -> GangIndex:
        """Who starts together or not at all."""
        return GangIndex(self.fleet.observed)

    @property
    def has_claims(self) -> bool:
        """Whether anybody acts on anything yet."""
        return bool(self._claimed)

    def claimed_by(self, subject: Ref) -> str:
        """The planner that acts on it already; nothing when it is free."""
        decision = self._claimed.get(subject)
        return decision.planner if decision is not None else ""

    def act_on(self, subject: Ref) -> Action | Hold | None:
        """What that one does to it."""
        decision = self._claimed.get(subject)
        return decision.act if decision is not None else None

    def leaves(self, node: Node) -> bool:
        """Whether the node is on its way out once the actions of earlier planners are done. Each node counts once: a
        node that bears a taint already and is deleted in this plan is one node. Of what is only told nothing is done.
        """
        decision = self._claimed.get(node_ref(node)) if self._claimed else None
        if decision is None or decision.would:
            return node.is_being_removed
        return leaves_after(decision.act, node)

    @property
    def claims(self) -> Iterable[Decision]:
        """What planners do to them."""
        return self._claimed.values()

    def is_labelled(self, subject: Ref) -> bool:
        """Whether a planner puts labels on it already."""
        return subject in self._labelled

    def takes_away(self, node: str) -> bool:
        """Whether a planner deletes the node, or taints the node to take it away."""
        return node in self._taken_away

    @property
    def taken_away(self) -> Set[str]:
        """Names of these nodes."""
        return self._taken_away

    def claim(self, decision: Decision) -> None:
        """The subject of an action is its planner's for the rest of this plan; a label can wait."""
        if isinstance(decision.act, Label):
            self._labelled.add(decision.subject)
            return
        self._claimed.setdefault(decision.subject, decision)
        if takes_node_away(decision):
            self._taken_away.add(decision.subject.name)


def takes_node_away(decision: Decision) -> bool:
    """Whether the action deletes a node, or taints the node to take it away."""
    act = decision.act
    begins = isinstance(act, Taint) and act.key in names.TAKING and act.value is not None
    return decision.subject.kind == "Node" and (begins or isinstance(act, Delete))


def leaves_after(act: Action | Hold | None, node: Node) -> bool:
    """Whether a node is on its way out once an action is done to it."""
    match act:
        case Delete():
            return True
        case Taint(key=key, value=value) if key in names.TAKING:
            return value is not None
        case _:
            return node.is_being_removed


class Verdict(msgspec.Struct, frozen=True):
    """What one planner came to."""

    decisions: tuple[Decision, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    memory: Memory | None = None  # None: as it was
    wake_at: Instant | None = None
    sizes: tuple[SizeEvaluation, ...] = ()
    weighed: tuple[DrainEligibility, ...] = ()
    purchases: tuple[Purchase, ...] = ()
    hints: Hints | None = None


class Planner(Protocol):
    """Pure: from inputs and draft to a verdict; for the cluster's condition it holds, and never raises."""

    def __call__(self, inputs: Inputs, draft: Draft) -> Verdict: ...
