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

from reconciler.model.plan.consequence import Cause, Consequence, Fate, MachineOrder, Share, summed
from reconciler.model.plan.purchase import Purchase, Stage
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.impact.mode_changes import Side
from reconciler.plan.impact.sizes import later

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
