"""A provisioner's turn in a plan: what is decided for it, once it is known what it comes to."""

from functools import cached_property

import msgspec

from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.plan.action import Action, Hold, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import CodeFacts, Reason
from reconciler.model.plan.refs import node_ref
from reconciler.model.plan.size_evaluation import SizeEvaluation
from reconciler.plan.draft import Draft
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.scaling.demand.assignment import Demand
from reconciler.plan.scaling.demand.shortfall import Shortfall
from reconciler.plan.scaling.evaluate import Evaluation
from reconciler.plan.scaling.growth import Claimants
from reconciler.plan.scaling.pool_view import PoolView
from reconciler.plan.scaling.reasons import PLANNER, SizeWhy


class PoolContext(msgspec.Struct, frozen=True, dict=True):
    """What the steps go by."""

    pool_view: PoolView
    evaluation: Evaluation
    demand: Demand
    spoken_for: frozenset[str]
    awaiting: frozenset[str]
    draft: Draft
    freezes: Freezes

    @property
    def now(self) -> Instant:
        return self.pool_view.context.now

    @property
    def evaluated(self) -> SizeEvaluation:
        return self.evaluation.evaluated

    @property
    def short(self) -> Shortfall:
        return self.evaluation.short

    @cached_property
    def ref(self) -> Ref:
        """Of the provisioner."""
        return Ref("NodeProvisioner", "", self.pool_view.wish.name)

    @property
    def pool(self) -> str:
        return self.evaluated.pool

    @property
    def size(self) -> int:
        return self.evaluated.size

    @property
    def surplus(self) -> int:
        return self.evaluated.surplus

    @property
    def size_why(self) -> SizeWhy:
        """Why so many nodes are wanted."""
        return self.evaluation.why

    @cached_property
    def wanted(self) -> dict[str, Claimants]:
        """Marked nodes that pods wait for."""
        claimantses = dict.fromkeys(self.awaiting, Claimants(are_evicted=True))
        claimantses |= dict.fromkeys(self.spoken_for, Claimants())
        return claimantses | {name: Claimants(pods) for name, pods in self.demand.keeps.items()}

    def act(self, node: Node, act: Action | Hold, why: Reason) -> Decision:
        return Decision(PLANNER, node_ref(node), act, why, self.pool_view.pool.name)

    def hold(self, why: Reason, until: Instant | None = None) -> Decision:
        """Of the provisioner itself."""
        return Decision(PLANNER, self.ref, Hold(until), why, self.pool)

    def why(self, facts: CodeFacts) -> Reason:
        """A reason that leads back to the policy."""
        return Reason(facts, self.evaluated.reason.origin)
