"""Why a pool's NodePool is, or is not, being changed; and how the pool is used."""

from collections import Counter
from collections.abc import Iterator

from reconciler.model.plan.consequence import Fate
from reconciler.model.pool_use import Use
from reconciler.plan.capacity.shortages import short_of, short_words
from reconciler.plan.explain.consequences import COMES, by_guard
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.sums.usage import use_of
from reconciler.report.explain.about import (
    Explanation,
    Row,
    UnknownSubject,
    coming_words,
    condition_of,
    fate_of,
    placed,
    unread,
    would_be,
)
from reconciler.report.explain.decisions import decided_rows, tally
from reconciler.report.explain.scale_down import marked_words
from reconciler.report.explain.standing_orders import freeze_rows, guard_rows
from reconciler.report.wording import counted

NODE_POOLS = "nodepools.karpenter.sh"

# What becomes of nodes, in the order in which it is told.
_BECOME: tuple[tuple[Fate, str], ...] = (
    ("scaled", "scaled down"),
    ("drained", "drained"),
    ("removed", "removed by Karpenter"),
    ("replaced", "replaced by Karpenter"),
    ("deleted", "deleted with the NodePool"),
    ("blocked", "drifted and held up"),
    ("undrifted", "no longer drifted"),
    ("exchanged", "replaced by other machines than before"),
)


def about_pool(scene: PlanningResult, name: str) -> Explanation:
    """Everything that is known of the pool: its policy, its NodePool, its nodes."""
    pool = scene.inputs.desired.pool(name)
    live = [each for each in scene.inputs.observed.node_pools if each.name == name]
    nodes = scene.fleet.nodes_of(name)
    if pool is None and not live and not nodes:
        none = f"there is no pool {name}: no policy, no NodePool and no node names it"
        raise UnknownSubject(unread(scene, NODE_POOLS, "nodes") or none)
    decisions = tuple(each for each in scene.plan.decisions if name in {each.pool, each.subject.name})
    decided = tuple(decided_rows(scene, decisions))
    outcomes = " ".join(filter(None, (_departing(scene, name), _coming(scene, name))))
    if outcomes or len(decided) > 1:
        outcome = outcomes or tally(scene, decisions)
        rows = (*decided, *_rows(scene, name))
    else:
        outcome = decided[0][1] if decided else "It is as the policies want it; nothing is to be done."
        rows = tuple(_rows(scene, name))
    return Explanation(f"pool/{name}", headline(scene, use_of(scene.fleet, name, 0)), outcome, rows, decisions)


def _departing(scene: PlanningResult, pool: str) -> str:
    """Of its 120 nodes, 6 are scaled down and 4 are drained."""
    size = counted(use_of(scene.fleet, pool, 0).nodes, "node")
    begins = f"Of its {size}, "
    by_condition: dict[str, Counter[Fate]] = {}  # Would, if GpuPool/a100 were in mode Enforce: of its 12 nodes,
    for each in scene.plan.consequences:
        for _, part in by_guard(scene, each) if each.pool == pool and each.fate not in COMES else ():
            by_condition.setdefault(would_be(scene, part, begins), Counter())[part.fate] += len(part.nodes)
    return " ".join(f"{condition}{_become(nodes)}." for condition, nodes in by_condition.items())


def _become(nodes: Counter[Fate]) -> str:
    parts = [f"{nodes[fate]} {'is' if nodes[fate] == 1 else 'are'} {words}" for fate, words in _BECOME if nodes[fate]]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _coming(scene: PlanningResult, pool: str) -> str:
    """10 nodes are bought: 8 of p4d.24xlarge (reserved) and 2 of p4d.24xlarge (spot)."""
    by_condition: dict[str, Counter[str]] = {}  # Would, were the pool acted on:
    for each in scene.plan.consequences:
        if each.pool == pool and each.fate == "bought" and each.order is not None:
            by_condition.setdefault(condition_of(scene, each), Counter())[each.order.words] += len(each.nodes)
    return " ".join(f"{condition}{_bought(sorts)}." for condition, sorts in by_condition.items())


def _bought(sorts: Counter[str]) -> str:
    number = sorts.total()
    parts = [f"{count} of {sort}" for sort, count in sorted(sorts.items())] if len(sorts) > 1 else list(sorts)
    text = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"{counted(number, 'node')} {'is' if number == 1 else 'are'} bought: {text}"


def headline(scene: PlanningResult, use: Use) -> str:
    """How it is used, as far as that is known."""
    if why := unread(scene, "nodes"):
        return f"its nodes are not known: {why}"
    if why := unread(scene, "pods"):
        return f"{counted(use.nodes, 'node')}, {use.gpus_total} GPUs, how many in use is not known: {why}"
    used = f"{use.gpus_used} of {use.gpus_total} GPUs in use"
    return f"{counted(use.nodes, 'node')}, {use.busy_nodes} busy, {used}"


def _rows(scene: PlanningResult, name: str) -> Iterator[Row]:
    pool = scene.inputs.desired.pool(name)
    yield "policy", f"mode {pool.spec.mode}, {placed(pool.origin())}" if pool else "none: nothing is decided for it"
    live = next((each for each in scene.inputs.observed.node_pools if each.name == name), None)
    if live is None:
        why = scene.inputs.observed.why_unread(NODE_POOLS)
        yield "NodePool", f"not known: {why}" if why else "there is none"
    else:
        yield "NodePool", "in our inventory" if live.is_ours else "made by someone else"
    for consequence in scene.plan.consequences:
        if consequence.pool == name:
            cause = "because of this change" if consequence.cause == "change" else "as things stand"
            if consequence.fate in COMES:
                yield cause, would_be(scene, consequence, coming_words(scene, consequence))
                continue
            for _, part in by_guard(scene, consequence):
                each = f"{counted(len(part.nodes), 'node')}: each {fate_of(scene, part)}"
                yield cause, would_be(scene, part, each)
    for evaluated in scene.plan.sizes:
        if evaluated.pool == name:
            marked = f", {marked_words(scene, evaluated)}" if evaluated.marked else ""
            yield "scaled by", f"provisioner/{evaluated.provisioner}: target {evaluated.target}{marked}"
    if short := short_of(scene.plan.memory.shortages, name, scene.inputs.now):
        yield "can't be had", short_words(short)
    yield from freeze_rows(Freezes(scene.inputs, scene.fleet).of_pool(name))
    yield from guard_rows(scene, name)
    drifted = [claim for claim in scene.fleet.claims_of(name) if claim.says("Drifted")]
    if drifted:
        yield "drifted now", counted(len(drifted), "NodeClaim")
