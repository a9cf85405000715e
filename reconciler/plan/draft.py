"""Owner of a plan in the making: the what-if fleet, the subjects claimed so far, and the capacity that is missing."""

from collections.abc import Iterable
from functools import cached_property
from typing import Literal, Protocol

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.planned.action import Action, Delete, Hold, Ref, Taint
from reconciler.model.planned.consequence import Consequence
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.evaluated import Evaluated
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.memory import Hints, Memory
from reconciler.model.planned.weighed import Weighed
from reconciler.plan.requests.gangs import Gangs
from reconciler.plan.requests.requests import Requests
from reconciler.plan.requests.wanted import Answered, Wanted


class Missing(msgspec.Struct, frozen=True):
    """Nodes that a pool lacks, and that nobody has bought."""

    pool: str
    provisioner: str  # nothing where the pool has none
    nodes: int
    why: Literal["demand", "minSize"]
    pods: tuple[Ref, ...] = ()  # of demand: whom they are for
    wanted: tuple[Wanted, ...] = ()  # each of these nodes


class Draft:
    """What one planner leaves for the next."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.missing: list[Missing] = []
        self.answered = Answered()
        self._claimed: dict[Ref, Decision] = {}

    @cached_property
    def requests(self) -> Requests:
        """What smart pods ask for."""
        return Requests(self.fleet)

    @cached_property
    def gangs(self) -> Gangs:
        """Who starts together or not at all."""
        return Gangs(self.fleet.observed)

    @property
    def has_claims(self) -> bool:
        """Whether anybody acts on anything yet."""
        return bool(self._claimed)

    def claimed_by(self, subject: Ref) -> str:
        """The planner that acts on it already; nothing when it is free."""
        found = self._claimed.get(subject)
        return found.planner if found is not None else ""

    def act_on(self, subject: Ref) -> Action | Hold | None:
        """What that one does to it."""
        found = self._claimed.get(subject)
        return found.act if found is not None else None

    def leaves(self, node: Node) -> bool:
        """Whether the node is on its way out once the actions of earlier planners are done. Each node counts once: a
        node that bears a taint already and is deleted in this plan is one node. Of what is only told nothing is done.
        """
        found = self._claimed.get(Ref("Node", "", node.name, node.metadata.uid)) if self._claimed else None
        if found is None or found.would:
            return node.is_going
        return leaves_after(found.act, node)

    @property
    def claims(self) -> Iterable[Decision]:
        """What planners do to them."""
        return self._claimed.values()

    def claim(self, decision: Decision) -> None:
        """The subject of an action is its planner's for the rest of this plan."""
        self._claimed.setdefault(decision.subject, decision)


def leaves_after(act: Action | Hold | None, node: Node) -> bool:
    """Whether a node is on its way out once an action is done to it."""
    match act:
        case Delete():
            return True
        case Taint(key=key, value=value) if key in names.TAKING:
            return value is not None
        case _:
            return node.is_going


class Verdict(msgspec.Struct, frozen=True):
    """What one planner came to."""

    decisions: tuple[Decision, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    memory: Memory | None = None  # None: as it was
    wake_at: Instant | None = None
    sizes: tuple[Evaluated, ...] = ()
    weighed: tuple[Weighed, ...] = ()
    hints: Hints | None = None


class Planner(Protocol):
    """Pure: from inputs and draft to a verdict; for the cluster's condition it holds, and never raises."""

    def __call__(self, inputs: Inputs, draft: Draft) -> Verdict: ...
