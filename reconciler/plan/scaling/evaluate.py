"""What each NodeProvisioner comes to: the size of its pool that is wanted, and why. Nothing is done for it here.

Without demand the target follows from how the pool is used (size.py). With demand no more nodes are let go than were
marked before and are not needed for it, and those that are bought for it come on top. So a pod that waits never makes
room for more nodes to be marked, and only calls back as many as it needs.

But where a pool may have no more nodes, and nothing that it has or awaits is of use to the pods that wait, the size
follows from use all the same: empty nodes of a sort that serves nobody go, and leave room for one that does.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Action, CodeFacts, Decision, Hold, Reason, Ref, node_ref
from reconciler.model.plan.evaluation import Limit, SizeEvaluation
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

# To judge how a pool is used, all of these must have been read.
NEEDED = ("nodes", "pods", "nodeclaims.karpenter.sh")
# Without these a node is taken for empty of which GPUs are lent; all else can be judged.
LENDING = "leases.coordination.k8s.io"


class _Wanted(msgspec.Struct, frozen=True):
    target: int
    surplus: int  # nodes that are to be marked, or stay so
    reason: Reason
    why: SizeWhy


class Evaluation(msgspec.Struct, frozen=True):
    """One provisioner."""

    evaluated: SizeEvaluation
    why: SizeWhy  # the size that it wants
    short: Shortfall  # what its pool lacks that no pod asks for


def evaluate(pool_view: PoolView, demand: Demand) -> Evaluation:
    """One provisioner, by its pool and what pods ask of it."""
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
    """Whether anything is done for pods that wait, or can still be."""
    is_stuck = demand.left and not (
        demand.keeps or demand.new_nodes or pool_view.machines or pool_view.requested_machines
    )
    return bool(demand.pods) and not is_stuck


def _surplus(pool_view: PoolView, size: Size) -> int:
    """Nodes above the target that nobody else takes away."""
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
    target = min(max(wished, wish.min_size), wish.max_size)
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


# --- A provisioner's turn in a plan: what is decided for it, once it is known what it comes to.


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
