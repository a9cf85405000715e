"""A provisioner's turn in a plan: what is decided for it, once it is known what it comes to."""

from functools import cached_property

import msgspec

from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, timestamp
from reconciler.model.planned.action import Action, Hold, Ref
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.evaluated import Evaluated
from reconciler.model.planned.reason import Reason
from reconciler.plan.draft import Draft
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.reasons import Because
from reconciler.plan.scaling.demand.serving import Demand
from reconciler.plan.scaling.demand.shortfall import Shortfall
from reconciler.plan.scaling.ground import Ground, Noted
from reconciler.plan.scaling.reasons import PLANNER


class Turn(msgspec.Struct, frozen=True, dict=True):
    """What the steps go by."""

    ground: Ground
    evaluated: Evaluated
    demand: Demand
    short: Shortfall
    spoken_for: frozenset[str]
    awaiting: frozenset[str]
    draft: Draft
    freezes: Freezes

    @property
    def now(self) -> Instant:
        return self.ground.site.now

    @property
    def subject(self) -> Ref:
        return Ref("NodeProvisioner", "", self.ground.wish.name)

    @property
    def title(self) -> str:
        return self.subject.title

    @cached_property
    def wanted(self) -> dict[str, str]:
        """Marked nodes that pods wait for, and how many do."""
        found = dict.fromkeys(self.awaiting, "pods that were evicted lately and are still")
        found |= dict.fromkeys(self.spoken_for, "pods")
        return found | {name: f"{pods} pod" + ("s" if pods > 1 else "") for name, pods in self.demand.keeps.items()}

    def act(self, node: Node, act: Action | Hold, why: Reason) -> Decision:
        return Decision(PLANNER, ref_of(node), act, why, self.ground.pool.name)

    def hold(self, why: Reason, until: Instant | None = None) -> Decision:
        """Of the provisioner itself."""
        return Decision(PLANNER, self.subject, Hold(until), why, self.evaluated.pool)

    def why(self, because: Because, **facts: str | int) -> Reason:
        """A reason that leads back to the policy; with what is known of the provisioner."""
        told = self.evaluated.reason.fact
        known: dict[str, str | int] = {
            "provisioner": self.title,
            "pool": self.ground.pool.name,
            "size": self.evaluated.size,
            "surplus": self.evaluated.surplus,
            "why": told("why"),
        }
        named = {key: value for key, value in known.items() if f"{{{key}}}" in because.template}
        return because.reason(self.evaluated.reason.origin, **(named | facts))


def ref_of(node: Node) -> Ref:
    return Ref("Node", "", node.name, node.metadata.uid)


def time_of(noted: Noted) -> str:
    """When it was to go, as a person reads it."""
    at = noted.mark.at
    return noted.mark.value if at is None else timestamp(at)
