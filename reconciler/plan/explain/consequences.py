"""Which guard holds a consequence, or a part of it."""

from collections.abc import Iterator

from reconciler.model.plan.action import Hold, Ref
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.reasons import HeldByGuard

# Nodes that are not there yet.
COMES: frozenset[Fate] = frozenset({"bought", "scheduled", "limited"})


def by_guard(scene: PlanningResult, consequence: Consequence) -> Iterator[tuple[Ref | None, Consequence]]:
    """The parts of it that one guard holds, each with the guard; first what no guard holds."""
    groups: dict[Ref | None, list[str]] = {}
    for name in consequence.nodes if consequence.cause == "change" else ():
        own = consequence.only((name,))
        groups.setdefault(guard_holding(scene, own) if own is not None else None, []).append(name)
    if len(groups) <= 1:
        yield next(iter(groups), None), consequence
        return
    for guard, nodes in sorted(groups.items(), key=lambda each: each[0].title if each[0] is not None else ""):
        part = consequence.only(nodes)
        if part is not None:
            yield guard, part


def guard_holding(scene: PlanningResult, consequence: Consequence) -> Ref | None:
    """The guard that holds what it follows from: the edit of the NodePool, or what is done to its nodes one by one. No
    guard holds a purchase, but for nodes that follow on those which an edit removes."""
    if consequence.fate in COMES and (consequence.order is None or consequence.order.stage != "refill"):
        return None
    is_ours = consequence.fate in {"scaled", "drained"}
    kind, names = ("Node", set(consequence.nodes)) if is_ours else ("NodePool", {consequence.node_pool})
    for each in scene.plan.decisions:
        if each.subject.kind == kind and each.subject.name in names:
            facts = each.reason.facts if isinstance(each.act, Hold) else None
            if isinstance(facts, HeldByGuard):
                return facts.guard
            if not is_ours:
                return None
    return None
