"""What each NodeProvisioner comes to: the size of its pool that is wanted, and why. Nothing is done for it here.

Without demand the target follows from how the pool is used (size.py). With demand no more nodes are let go than were
marked before and are not needed for it, and those that are bought for it come on top. So a pod that waits never makes
room for more nodes to be marked, and only calls back as many as it needs.

But where a pool may have no more nodes, and nothing that it has or awaits is of use to the pods that wait, the size
follows from use all the same: empty nodes of a sort that serves nobody go, and leave room for one that does.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model.planned.evaluated import Evaluated, Limit
from reconciler.model.planned.reason import Reason
from reconciler.plan.reasons import counted
from reconciler.plan.scaling.demand.serving import Demand
from reconciler.plan.scaling.demand.shortfall import Shortfall, shortfall
from reconciler.plan.scaling.ground import Ground
from reconciler.plan.scaling.reasons import AT_MOST, BRAKE, DEMAND_FIRST, GROWS, LENT_UNREAD, SIZED, UNREAD
from reconciler.plan.scaling.size import Size, decide_size
from reconciler.plan.sums import brake

# To judge how a pool is used, all of these must have been read.
NEEDED = ("nodes", "pods", "nodeclaims.karpenter.sh")
# Without these a node is taken for empty of which GPUs are lent; all else can be judged.
LENDING = "leases.coordination.k8s.io"


class _Wanted(msgspec.Struct, frozen=True):
    target: int
    surplus: int  # nodes that are to be marked, or stay so
    reason: Reason


def evaluate(ground: Ground, demand: Demand) -> tuple[Evaluated, Shortfall]:
    """One provisioner, by its pool and what pods ask of it; and what its pool lacks that no pod asks for."""
    size = decide_size(ground.use, ground.wish.spec)
    is_served = _is_served(ground, demand)
    surplus = _surplus(ground, size)
    if is_served:
        surplus = min(surplus, len(ground.ours) - len(demand.keeps))
    short = shortfall(ground, demand, surplus)
    wanted = _growing(ground, demand, surplus, short) if is_served else _resting(ground, size, surplus)
    marked = tuple(told for each in ground.noted if (told := each.told) is not None)
    evaluated = Evaluated(
        provisioner=ground.wish.name,
        pool=ground.pool.name,
        use=ground.use,
        target=wanted.target,
        surplus=wanted.surplus,
        reason=wanted.reason,
        leaving=len(ground.noted) + len(ground.leaving_otherwise),
        leaving_otherwise=len(ground.leaving_otherwise),
        arriving=len(ground.arriving),
        pods=len(demand.pods),
        missing=demand.new_nodes + short.nodes,
        marked=marked,
        limits=tuple(_limits(ground, demand)),
    )
    return evaluated, short


def _is_served(ground: Ground, demand: Demand) -> bool:
    """Whether anything is done for pods that wait, or can still be."""
    is_stuck = demand.left and not (demand.keeps or demand.new_nodes or ground.machines or ground.asked)
    return bool(demand.pods) and not is_stuck


def _surplus(ground: Ground, size: Size) -> int:
    """Nodes above the target that nobody else takes away."""
    return max(0, ground.size - len(ground.leaving_otherwise) - size.target)


def _resting(ground: Ground, size: Size, surplus: int) -> _Wanted:
    origin = ground.wish.origin(f"spec.{size.by}")
    facts = _facts(ground, size.target)
    return _Wanted(size.target, surplus, SIZED.reason(origin, **facts, why=size.reason))


def _growing(ground: Ground, demand: Demand, surplus: int, short: Shortfall) -> _Wanted:
    wish = ground.wish.spec
    wished = ground.size - surplus + len(ground.arriving) + ground.asked + demand.new_nodes + short.warm
    target = min(max(wished, wish.min_size), wish.max_size)
    parts = (
        (len(demand.keeps), "marked before and kept for them"),
        (len(ground.arriving), "on their way"),
        (ground.asked, "asked for by smart pods"),
        (demand.new_nodes, "to be bought"),
        (short.warm, "to be bought and kept warm"),
    )
    why = ", ".join(f"{count} {told}" for count, told in parts if count) or "none is to be bought"
    facts = _facts(ground, target) | {"nodes": counted(target, "node"), "pods": counted(len(demand.pods), "pod")}
    reason = GROWS.reason(ground.wish.origin(), **facts, why=why)
    return _Wanted(target, surplus, reason)


def _limits(ground: Ground, demand: Demand) -> Iterator[Limit]:
    observed = ground.site.inputs.observed
    if why := observed.why_unread(*NEEDED):
        yield Limit("ScaleDownHeld", UNREAD.reason(ground.wish.origin(), pool=ground.pool.name, why=why))
    elif why := observed.why_unread(LENDING):
        yield Limit("ScaleDownHeld", LENT_UNREAD.reason(ground.wish.origin(), pool=ground.pool.name, why=why))
    if brake.is_on(ground.size, ground.unready):
        told = BRAKE.reason(ground.wish.origin(), pool=ground.pool.name, size=ground.size, unready=ground.unready)
        yield Limit("ScaleDownHeld", told)
    if _is_served(ground, demand):
        pods = counted(len(demand.pods), "pod")
        yield Limit("ScaleDownHeld", DEMAND_FIRST.reason(ground.wish.origin(), pool=ground.pool.name, pods=pods))
    if demand.left:
        pods, origin = counted(demand.left, "pod"), ground.wish.origin("spec.maxSize")
        yield Limit("ScaleUpLimited", AT_MOST.reason(origin, pool=ground.pool.name, pods=pods, limit=demand.room.told))


def _facts(ground: Ground, target: int) -> dict[str, str | int]:
    title = f"NodeProvisioner/{ground.wish.name}"
    return {"provisioner": title, "pool": ground.pool.name, "size": ground.size, "target": target}
