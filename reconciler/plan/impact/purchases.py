"""New nodes of pools as consequences: launching, requested by smart pods now or later, or left to Karpenter for pods it
sees.

Nodes that do not exist yet have no names and are interchangeable: those of one pool, instance type and capacity type
are numbered in order of arrival. So two plans that buy 48 and 58 nodes have 48 in common, whichever pods they are
for. Purchases that the base plan also has happen in any case, even if Karpenter makes them; purchases only in the
plan of the change are caused by it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, clock
from reconciler.model.plan.capacity import CapacityReport, Purchase, Stage, Why
from reconciler.model.plan.consequence import LEAVES, Cause, Consequence, Fate, MachineOrder, Share, summed
from reconciler.model.plan.evaluation import ScalingReport, SizeEvaluation
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import NodeProvisioner, bounded_size
from reconciler.plan.capacity.offerings import choices, zones_of
from reconciler.plan.capacity.words import limit_words
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.blame import Side
from reconciler.plan.reasons import counted
from reconciler.plan.windows import at, changes_at, is_open

_STAGES: tuple[Stage, ...] = get_args(Stage)
# Continues without this plan: decided before, or not by us.
_UNCHANGED_STAGES: frozenset[Stage] = frozenset({"machine", "asked", "karpenter", "attempt", "schedule", "limit"})
_FATES: Mapping[Stage, Fate] = {"limit": "limited", "schedule": "scheduled"}
# Begun before, even if the base does not declare the pool.
_BEGUN: frozenset[Stage] = frozenset({"machine", "asked"})

_Named = Mapping[str, Purchase]  # by placeholder name of the node


def with_purchases(own: Side, base: Side | None = None) -> tuple[Side, Side | None]:
    """Both plans, with new nodes among their consequences. `own` and `base` include all departures."""
    bought = _named(own)
    if base is None:
        return _with(own, bought, _causes(own, bought)), None
    before = _named(base)
    declared = {pool.name for pool in base.scene.inputs.desired.pools}
    causes: dict[str, Cause] = {}
    for name, each in bought.items():
        is_begun = each.stage in _BEGUN and each.pool not in declared
        comes_anyway = name in before and _fate(before[name]) == _fate(each)
        causes[name] = "standing" if is_begun or comes_anyway else "change"
    return _with(own, bought, causes), _with(base, before, _causes(base, before))


def _causes(side: Side, named: _Named) -> dict[str, Cause]:
    return {name: _cause(side.scene, each) for name, each in named.items()}


def _cause(scene: PlanningResult, purchase: Purchase) -> Cause:
    if purchase.stage == "refill":
        removed = (each for each in scene.plan.consequences if each.pool == purchase.pool and each.fate == "removed")
        return "change" if any(each.cause == "change" for each in removed) else "standing"
    return "standing" if purchase.stage in _UNCHANGED_STAGES else "change"


def _fate(purchase: Purchase) -> Fate:
    return _FATES.get(purchase.stage, "bought")


def _named(side: Side) -> _Named:
    scene = side.scene
    there = {name for each in scene.plan.consequences for name in each.nodes}
    purchases = [each for each in scene.plan.report(CapacityReport).purchases if side.does(each.pool, each.stage)]
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
    """Properties of interchangeable nodes; placeholder names contain a slash, node names never do."""
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
    return side.with_consequences((*side.scene.plan.consequences, *_consequences(named, causes)))


def _consequences(named: _Named, causes: Mapping[str, Cause]) -> Iterator[Consequence]:
    """One per pool, fate, cause and order."""
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


# --- Nodes that a NodeProvisioner requests after this plan: replacements for nodes removed by Karpenter, and by
# schedules.
#
# Both follow from the size of the pool after all planned changes. Scaling and drains respect minSize and warmNodes;
# Karpenter deletes empty drifted nodes regardless of both, so these are bought again.


class _Size(msgspec.Struct, frozen=True):
    """Size of one pool after all planned changes."""

    nodes: int
    needed: int  # used by pods, or bought for pods
    removed: int  # removed by Karpenter without replacement
    closed: int  # empty nodes cordoned by others

    def lacks(self, wish: NodeProvisioner, most: int | None = None) -> tuple[tuple[Why, int], tuple[Why, int]]:
        """Missing nodes to the bounds of the size, and additional ones for warmNodes; at most `most` in total."""
        lack = bounded_size(wish, self.nodes).lack
        warm = self.needed + self.closed + wish.warm_nodes - self.nodes if wish.warm_nodes else 0
        room = max(0, wish.max_size - self.nodes)
        short, extra = lack.nodes, max(0, min(room, warm) - lack.nodes)
        if most is not None:
            short = min(short, most)
            extra = min(extra, most - short)
        return (lack.field, short), ("warmNodes", extra)


def later(scene: PlanningResult, bought: Iterable[Purchase]) -> Iterator[Purchase]:
    """For each NodeProvisioner that is not suspended. `bought` covers all pools."""
    wishes = {each.name: each for each in scene.inputs.desired.provisioners}
    coming = [each for each in bought if each.stage != "limit"]
    for evaluated in scene.plan.report(ScalingReport).sizes:
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
    """At most as many as Karpenter removes: other missing nodes are already requested in this plan."""
    for why, count in size.lacks(at(wish, scene.inputs.now).spec, size.removed):
        yield from (_purchase(scene, pool, "refill", why, None) for _ in range(count))


def _scheduled(
    scene: PlanningResult, wish: Declared[NodeProvisioner], pool: Declared[GpuPool], size: _Size
) -> Iterator[Purchase]:
    """By schedules that begin later, each at its next time: number of additional nodes."""
    now = scene.inputs.now
    starts = {changes_at(each, now) for each in wish.spec.schedules if not is_open(each, now)}
    for start in sorted(each for each in starts if each is not None):
        lacks = size.lacks(at(wish, start).spec)
        for why, count in lacks:
            yield from (_purchase(scene, pool, "schedule", why, start) for _ in range(count))
        size = msgspec.structs.replace(size, nodes=size.nodes + sum(count for _, count in lacks))


def _purchase(
    scene: PlanningResult, pool: Declared[GpuPool], stage: Stage, why: Why, begins: Instant | None
) -> Purchase:
    """With the first choice of the pool, because later failures are unknown."""
    spec = pool.spec
    choice = next(iter(choices(spec, zones_of(spec, scene.fleet))), None)
    instance_type = choice.instance_type if choice is not None else ""
    capacity_type = spec.capacity_types[0] if spec.capacity_types else ""
    return Purchase(pool.name, stage, why, instance_type, capacity_type, spec.devices.count, at=begins)


# --- Text about new nodes: type, purpose, and time.


def bought_words(consequence: Consequence) -> str:
    """Such as bought for minSize, p4d.24xlarge (reserved), for nodes that are bought, scheduled or limited."""
    order = consequence.order
    if order is None:
        return "bought"
    match consequence.fate:
        case "limited":
            return f"needed{_for(consequence, order)}, not bought because of a limit"
        case "scheduled":
            return f"bought by a schedule{_for(consequence, order)}, {order.words}"
        case _:
            why = ", launching" if order.stage == "machine" else _for(consequence, order)
            return f"bought{why}, {order.words}"


def _for(consequence: Consequence, order: MachineOrder) -> str:
    match order.why:
        case "demand":
            return f" for {counted(consequence.serves, 'pod')}" if consequence.serves else " for pods"
        case None:
            return ""
        case field:
            return f" for {field}"


def bought_when(consequence: Consequence, now: Instant) -> Iterator[str]:
    """Stage of the purchase, and the part covered by a commitment."""
    order = consequence.order
    if order is None:
        return
    yield _when(consequence, order, now)
    if covered := _on_commitment(consequence):
        some = "" if covered == len(consequence.nodes) else f"{covered} of them "
        yield f"{some}covered by the commitment"


def _when(consequence: Consequence, order: MachineOrder, now: Instant) -> str:
    first = consequence.first_at
    match order.stage:
        case "machine":
            return "NodeClaims exist" if len(consequence.nodes) > 1 else "NodeClaim exists"
        case "asked":
            return "already requested"
        case "karpenter":
            return "left to Karpenter for unschedulable pods"
        case "attempt":
            return f"at the next attempt{f', {clock(first, now)}' if first is not None else ''}"
        case "node_pool":
            return f"once NodePool/{consequence.node_pool} exists"
        case "refill":
            return "after Karpenter has deleted the old nodes"
        case "schedule":
            lasting = "while the schedule is active; not included in totals"
            return f"from {clock(first, now)}, {lasting}" if first is not None else ""
        case "limit":
            least = "lower bound: " if order.why == "demand" else ""
            limit = limit_words(order.limit) if order.limit is not None else "a limit"
            return f"{least}{limit} allows no more"
        case "request" | None:
            return "immediately"


def _on_commitment(consequence: Consequence) -> int:
    if consequence.fate != "bought":
        return 0
    return sum(not (each.is_paid_for or each.unpriced or each.micro_dollars_per_hour) for each in consequence.shares)
