"""Nodes that pools are to get, as consequences: what is on its way, what smart pods ask for, now or later, and what
Karpenter is left to buy for pods that it sees.

Nodes that are not there yet have no names, and one is as good as another: those of one pool, instance type and capacity
type are numbered, those first that come first. So two plans that buy 48 and 58 of them have 48 in common, whichever
pods they are for. What a plan of the base buys as well comes anyway, also where Karpenter buys it; what only the plan
of the change buys is caused by the change.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, clock
from reconciler.model.plan.capacity import Purchase, Stage, Why
from reconciler.model.plan.consequence import LEAVES, Cause, Consequence, Fate, MachineOrder, Share, summed
from reconciler.model.plan.evaluation import SizeEvaluation
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.plan.capacity.offerings import choices, zones_of
from reconciler.plan.capacity.words import limit_words
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.blame import Side
from reconciler.plan.reasons import counted
from reconciler.plan.windows import at, changes_at, is_open

_STAGES: tuple[Stage, ...] = get_args(Stage)
# What goes on without this plan: it was decided before, or is not ours to decide.
_UNCHANGED_STAGES: frozenset[Stage] = frozenset({"machine", "asked", "karpenter", "attempt", "schedule", "limit"})
# What was begun before, also where the base does not look at the pool.
_BEGUN: frozenset[Stage] = frozenset({"machine", "asked"})

_Named = Mapping[str, Purchase]  # by the name that stands for the node


def with_purchases(own: Side, base: Side | None = None) -> tuple[Side, Side | None]:
    """Both plans, with the nodes that come among their consequences. `own`, `base`: with all that goes."""
    bought = _named(own)
    if base is None:
        return _with(own, bought, _causes(own, bought)), None
    before = _named(base)
    declared = {pool.name for pool in base.scene.inputs.desired.pools}
    causes: dict[str, Cause] = {}
    for name, each in bought.items():
        is_begun = each.stage in _BEGUN and each.pool not in declared
        causes[name] = "standing" if is_begun or _comes_anyway(each, before.get(name)) else "change"
    return _with(own, bought, causes), _with(base, before, _causes(base, before))


def _causes(side: Side, named: _Named) -> dict[str, Cause]:
    return {name: _cause(side.scene, each) for name, each in named.items()}


def _cause(scene: PlanningResult, purchase: Purchase) -> Cause:
    if purchase.stage == "refill":
        removed = (each for each in scene.plan.consequences if each.pool == purchase.pool and each.fate == "removed")
        return "change" if any(each.cause == "change" for each in removed) else "standing"
    return "standing" if purchase.stage in _UNCHANGED_STAGES else "change"


def _comes_anyway(purchase: Purchase, before: Purchase | None) -> bool:
    return before is not None and _fate(before) == _fate(purchase)


def _fate(purchase: Purchase) -> Fate:
    match purchase.stage:
        case "limit":
            return "limited"
        case "schedule":
            return "scheduled"
        case _:
            return "bought"


def _named(side: Side) -> _Named:
    scene = side.scene
    there = {name for each in scene.plan.consequences for name in each.nodes}
    purchases = [each for each in scene.plan.purchases if side.does(each.pool, each.stage)]
    bought = [each for each in purchases if each.stage != "machine" or each.name not in there]
    result: dict[str, Purchase] = {each.name: each for each in bought if each.stage == "machine"}
    numbers: Counter[str] = Counter()
    others = [each for each in bought if each.stage != "machine"]
    after = [each for each in later(scene, bought) if side.does(each.pool)]
    for each in sorted([*others, *after], key=_sort_key):
        kind = "/".join(_kind(each))
        numbers[kind] += 1
        result[f"{kind}/{numbers[kind]:04}"] = each
    return result


def _kind(purchase: Purchase) -> Iterator[str]:
    """What makes one as good as another; no node has a slash in its name."""
    yield purchase.pool
    if purchase.stage in {"limit", "schedule"}:
        yield purchase.stage
    if purchase.stage != "limit":
        yield from filter(None, (purchase.instance_type or "unknown", purchase.capacity_type))


def _sort_key(purchase: Purchase) -> tuple[str, int, int, str]:
    return purchase.pool, _STAGES.index(purchase.stage), purchase.at or 0, purchase.why or ""


def _with(side: Side, named: _Named, causes: Mapping[str, Cause]) -> Side:
    if not named:
        return side
    consequences = (*side.scene.plan.consequences, *_consequences(named, causes))
    plan = msgspec.structs.replace(side.scene.plan, consequences=consequences)
    return msgspec.structs.replace(side, scene=msgspec.structs.replace(side.scene, plan=plan))


def _consequences(named: _Named, causes: Mapping[str, Cause]) -> Iterator[Consequence]:
    """One a pool, fate, cause and order."""
    groups: dict[tuple[str, Fate, Cause, MachineOrder], list[str]] = {}
    for name, each in named.items():
        order = MachineOrder(each.instance_type, each.capacity_type, each.stage, each.why, each.limit)
        groups.setdefault((each.pool, _fate(each), causes[name], order), []).append(name)
    for key in sorted(groups, key=_group_sort_key):
        pool, fate, cause, order = key
        like = Consequence(pool, pool, cause, fate, (), 0, 0, 0, 0, order=order)
        yield summed(like, _shares(groups[key], named))


def _group_sort_key(key: tuple[str, Fate, Cause, MachineOrder]) -> tuple[Any, ...]:
    pool, _, cause, order = key
    stage = _STAGES.index(order.stage) if order.stage is not None else 0
    limit = (order.limit is not None, order.limit)
    return pool, cause != "standing", stage, (order.why or "", order.instance_type, order.capacity_type, limit)


def _shares(names: Iterable[str], named: _Named) -> Iterator[tuple[str, Share]]:
    for name in names:
        each = named[name]
        yield name, Share(each.gpus, 0, 0, 0, 0, (), at=each.at, serves=each.pods, is_paid_for=each.is_paid_for)


# --- Nodes that a NodeProvisioner asks for after this plan: in place of nodes that Karpenter removes, and by schedules.
#
# Both follow from the size that the pool will have once all is done that the plan leads to. Scaling and drains leave
# what minSize and warmNodes keep; Karpenter, which removes empty nodes that drift, knows neither, so these are bought
# again.


class _Size(msgspec.Struct, frozen=True):
    """Of one pool, once all is done."""

    nodes: int
    needed: int  # in use by pods, or bought for pods
    removed: int  # nodes that Karpenter takes away for good
    closed: int  # empty ones that others have cordoned

    def lacks(self, wish: NodeProvisioner) -> tuple[int, int]:
        """For minSize, and beside that for warmNodes."""
        least = wish.min_size - self.nodes
        warm = self.needed + self.closed + wish.warm_nodes - self.nodes if wish.warm_nodes else 0
        room = max(0, wish.max_size - self.nodes)
        short = min(room, max(0, least))
        return short, max(0, min(room, warm) - short)


def later(scene: PlanningResult, bought: Iterable[Purchase]) -> Iterator[Purchase]:
    """Of each NodeProvisioner that is not suspended. `bought`: of all pools."""
    wishes = {each.name: each for each in scene.inputs.desired.provisioners}
    coming = [each for each in bought if each.stage != "limit"]
    for evaluated in scene.plan.sizes:
        wish, pool = wishes.get(evaluated.provisioner), scene.inputs.desired.pool(evaluated.pool)
        if wish is not None and pool is not None:
            size = _size(scene, evaluated, [each for each in coming if each.pool == pool.name])
            refilled = list(_refilled(scene, wish, pool, size))
            yield from refilled
            grown = msgspec.structs.replace(size, nodes=size.nodes + len(refilled))
            yield from _scheduled(scene, wish, pool, grown)


def _size(scene: PlanningResult, evaluated: SizeEvaluation, coming: list[Purchase]) -> _Size:
    there = {node.name for node in scene.fleet.nodes_of(evaluated.pool) if not node.metadata.leaving}
    gone = {name for each in scene.plan.consequences if each.fate in LEAVES for name in each.nodes} & there
    by_karpenter = {name for each in scene.plan.consequences if each.fate == "removed" for name in each.nodes} & there
    for_pods = sum(each.why == "demand" for each in coming)
    needed = evaluated.use.needed_nodes + for_pods
    return _Size(len(there) - len(gone) + len(coming), needed, len(by_karpenter), evaluated.use.closed_nodes)


def _refilled(
    scene: PlanningResult, wish: Declared[NodeProvisioner], pool: Declared[GpuPool], size: _Size
) -> Iterator[Purchase]:
    """No more than Karpenter removes: what else is lacking is asked for in this plan already."""
    least, warm = size.lacks(at(wish, scene.inputs.now).spec)
    least = min(least, size.removed)
    warm = min(warm, size.removed - least)
    for why, count in _by_reason(least, warm):
        yield from (_purchase(scene, pool, "refill", why, None) for _ in range(count))


def _scheduled(
    scene: PlanningResult, wish: Declared[NodeProvisioner], pool: Declared[GpuPool], size: _Size
) -> Iterator[Purchase]:
    """By the schedules that begin later, each at its next time: how many nodes more than before."""
    now = scene.inputs.now
    starts = {changes_at(each, now) for each in wish.spec.schedules if not is_open(each, now)}
    for start in sorted(each for each in starts if each is not None):
        least, warm = size.lacks(at(wish, start).spec)
        for why, count in _by_reason(least, warm):
            yield from (_purchase(scene, pool, "schedule", why, start) for _ in range(count))
        size = msgspec.structs.replace(size, nodes=size.nodes + least + warm)


def _by_reason(least: int, warm: int) -> tuple[tuple[Why, int], tuple[Why, int]]:
    return ("minSize", least), ("warmNodes", warm)


def _purchase(
    scene: PlanningResult, pool: Declared[GpuPool], stage: Stage, why: Why, begins: Instant | None
) -> Purchase:
    """By the pool's first choice: which others fail by then is not known."""
    spec = pool.spec
    choice = next(iter(choices(spec, zones_of(spec, scene.fleet))), None)
    instance_type = choice.instance_type if choice is not None else ""
    capacity_type = spec.capacity_types[0] if spec.capacity_types else ""
    return Purchase(pool.name, stage, why, instance_type, capacity_type, spec.devices.count, at=begins)


# --- Nodes that come, in words: which, what for, and when.


def bought_words(consequence: Consequence) -> str:
    """bought for minSize, p4d.24xlarge (reserved); of nodes that are bought, scheduled or held back."""
    order = consequence.order
    if order is None:
        return "bought"
    match consequence.fate:
        case "limited":
            return f"wanted{_for(consequence, order)}, held back by a limit"
        case "scheduled":
            return f"bought by a schedule{_for(consequence, order)}, {order.words}"
        case _:
            is_coming = order.stage == "machine"
            return (
                f"bought, on the way, {order.words}"
                if is_coming
                else f"bought{_for(consequence, order)}, {order.words}"
            )


def _for(consequence: Consequence, order: MachineOrder) -> str:
    match order.why:
        case "demand":
            return f" for {counted(consequence.serves, 'pod')}" if consequence.serves else " for pods"
        case "minSize" | "warmNodes":
            return f" for {order.why}"
        case None:
            return ""


def bought_when(consequence: Consequence, now: Instant) -> Iterator[str]:
    """How far it is; and that part of it is paid for already."""
    order = consequence.order
    if order is None:
        return
    yield _when(consequence, order, now)
    if covered := _on_commitment(consequence):
        some = "" if covered == len(consequence.nodes) else f"{covered} of them "
        yield f"{some}on the commitment, paid for anyway"


def _when(consequence: Consequence, order: MachineOrder, now: Instant) -> str:
    first = consequence.first_at
    match order.stage:
        case "machine":
            return "Karpenter has bought them" if len(consequence.nodes) > 1 else "Karpenter has bought it"
        case "asked":
            return "asked for already"
        case "karpenter":
            return "left to Karpenter, which sees the pods"
        case "attempt":
            return f"at the next attempt{f', {clock(first, now)}' if first is not None else ''}"
        case "node_pool":
            return f"once NodePool/{consequence.node_pool} is there"
        case "refill":
            return "once nodes that Karpenter removes are gone"
        case "schedule":
            return f"from {clock(first, now)}, while the schedule holds; in no total" if first is not None else ""
        case "limit":
            least = "at least so many: " if order.why == "demand" else ""
            limit = limit_words(order.limit) if order.limit is not None else "a limit"
            return f"{least}{limit} allows no more"
        case "request" | None:
            return "at once"


def _on_commitment(consequence: Consequence) -> int:
    if consequence.fate != "bought":
        return 0
    return sum(not (each.is_paid_for or each.unpriced or each.micro_dollars_per_hour) for each in consequence.shares)
