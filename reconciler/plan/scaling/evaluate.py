"""Evaluation of NodeProvisioners: the wanted size of each pool, and why. No action is decided here.

Without demand, the target follows from the utilization of the pool (size.py). With demand, no more nodes are removed
than are marked already and not needed for the demand, and nodes to buy are added to the target. So a waiting pod
never causes further nodes to be marked, and only as many marked nodes are kept as the demand needs.

But if a pool may have no more nodes, and no node or in-flight node of the pool helps the waiting pods, the target
follows from utilization anyway: empty nodes of a type that serves nobody are removed, and leave room for a type that
does.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Action, CodeFacts, Decision, Hold, Reason, Ref, node_ref
from reconciler.model.plan.evaluation import Limit, SizeEvaluation
from reconciler.model.policy.scaling import bounded_size
from reconciler.plan import sums
from reconciler.plan.draft import Draft
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.scaling.demand.assignment import Demand, Shortfall, shortfall
from reconciler.plan.scaling.demand.fit import room_for
from reconciler.plan.scaling.pool_view import PoolView
from reconciler.plan.scaling.reasons import (
    PLANNER,
    DemandFirst,
    LentUnread,
    NoMoreNodes,
    PoolUnready,
    ScalingUnread,
    SizeWhy,
    TargetGrows,
    TargetSize,
)
from reconciler.plan.scaling.size import Claimants, Growth, Size, decide_size

# Kinds that must have been read to know the utilization of a pool.
NEEDED = ("nodes", "pods", "nodeclaims.karpenter.sh")
# Without this kind, a node with lent GPUs looks empty; everything else is known.
LENDING = "leases.coordination.k8s.io"


class _Wanted(msgspec.Struct, frozen=True):
    target: int
    surplus: int  # nodes to mark, or that stay marked
    reason: Reason
    why: SizeWhy


class Evaluation(msgspec.Struct, frozen=True):
    """Evaluation of one provisioner."""

    evaluated: SizeEvaluation
    why: SizeWhy  # reason of the wanted size
    short: Shortfall  # nodes that the pool lacks without waiting pods


def evaluate(pool_view: PoolView, demand: Demand) -> Evaluation:
    """Evaluate one provisioner by its pool and the demand."""
    size = decide_size(pool_view.use, pool_view.wish.spec)
    is_served = _is_served(pool_view, demand)
    surplus = _surplus(pool_view, size)
    if is_served:
        surplus = min(surplus, len(pool_view.ours) - len(demand.keeps))
    short = shortfall(pool_view, demand, surplus)
    wanted = _growing(pool_view, demand, surplus, short) if is_served else _resting(pool_view, size, surplus)
    marked = tuple(mark for each in pool_view.noted if (mark := each.marked) is not None)
    evaluated = SizeEvaluation(
        provisioner=pool_view.wish.name,
        pool=pool_view.pool.name,
        use=pool_view.use,
        target=wanted.target,
        surplus=wanted.surplus,
        reason=wanted.reason,
        leaving=len(pool_view.noted) + len(pool_view.leaving_otherwise),
        leaving_otherwise=len(pool_view.leaving_otherwise),
        arriving=len(pool_view.arriving),
        pods=len(demand.pods),
        missing=demand.new_nodes + short.nodes,
        marked=marked,
        limits=tuple(_limits(pool_view, demand)),
    )
    return Evaluation(evaluated, wanted.why, short)


def _is_served(pool_view: PoolView, demand: Demand) -> bool:
    """Whether anything is done for waiting pods, or can still be done."""
    is_stuck = demand.left and not (
        demand.keeps or demand.new_nodes or pool_view.machines or pool_view.requested_machines
    )
    return bool(demand.pods) and not is_stuck


def _surplus(pool_view: PoolView, size: Size) -> int:
    """Number of nodes above the target that nobody else removes."""
    return max(0, pool_view.size - len(pool_view.leaving_otherwise) - size.target)


def _resting(pool_view: PoolView, size: Size, surplus: int) -> _Wanted:
    origin = pool_view.wish.origin(f"spec.{size.by}")
    facts = TargetSize(_ref(pool_view), pool_view.pool.name, pool_view.size, size.target, size.reason)
    return _Wanted(size.target, surplus, Reason(facts, origin), size.reason)


def _growing(pool_view: PoolView, demand: Demand, surplus: int, short: Shortfall) -> _Wanted:
    wish = pool_view.wish.spec
    wished = (
        pool_view.size
        - surplus
        + len(pool_view.arriving)
        + pool_view.requested_machines
        + demand.new_nodes
        + short.warm
    )
    target = bounded_size(wish, wished).nodes
    why = Growth(len(demand.keeps), len(pool_view.arriving), pool_view.requested_machines, demand.new_nodes, short.warm)
    facts = TargetGrows(_ref(pool_view), pool_view.pool.name, pool_view.size, target, len(demand.pods), why)
    return _Wanted(target, surplus, Reason(facts, pool_view.wish.origin()), why)


def _limits(pool_view: PoolView, demand: Demand) -> Iterator[Limit]:
    observed, pool, origin = pool_view.context.inputs.observed, pool_view.pool.name, pool_view.wish.origin()
    if unread := observed.unread_among(*NEEDED):
        yield Limit("ScaleDownHeld", Reason(ScalingUnread(pool, unread), origin))
    elif unread := observed.unread_among(LENDING):
        yield Limit("ScaleDownHeld", Reason(LentUnread(pool, unread), origin))
    if sums.is_on(pool_view.size, pool_view.unready):
        yield Limit("ScaleDownHeld", Reason(PoolUnready(pool, pool_view.size, pool_view.unready), origin))
    if _is_served(pool_view, demand):
        yield Limit("ScaleDownHeld", Reason(DemandFirst(pool, len(demand.pods)), origin))
    if demand.left:
        facts = NoMoreNodes(pool, demand.left, room_for(pool_view).limit)
        yield Limit("ScaleUpLimited", Reason(facts, pool_view.wish.origin("spec.maxSize")))


def _ref(pool_view: PoolView) -> Ref:
    return Ref("NodeProvisioner", "", pool_view.wish.name)


# --- Context of the steps of one provisioner, after its evaluation.


class PoolContext(msgspec.Struct, frozen=True, dict=True):
    """Inputs of the steps."""

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
        """The provisioner."""
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
        """Why this number of nodes is wanted."""
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
        """Hold on the provisioner itself."""
        return Decision(PLANNER, self.ref, Hold(until), why, self.pool)

    def why(self, facts: CodeFacts) -> Reason:
        """Reason whose origin is the policy."""
        return Reason(facts, self.evaluated.reason.origin)
