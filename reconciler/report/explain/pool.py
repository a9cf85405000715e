"""Explanation of a pool: why its NodePool and its size are, or are not, changed. Explanation of a NodeProvisioner."""

from collections import Counter
from collections.abc import Iterator, Set

from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.consequence import Fate
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.evaluation import ScalingReport, SizeEvaluation, Use
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.plan.capacity.words import short_of, short_words
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.impact.departures import departing
from reconciler.plan.scaling.reasons import PLANNER
from reconciler.plan.sums import use_of
from reconciler.plan.windows import changes_at, closed, is_open, provisioners_now
from reconciler.report.explain.about import (
    COMES,
    ExplainedObject,
    Explanation,
    Row,
    UnknownSubject,
    by_guard,
    coming_words,
    condition_of,
    decided_rows,
    decision_sentence,
    decisions_about,
    fate_of,
    freeze_rows,
    guard_rows,
    placed,
    tally,
    unread,
    would_be,
)
from reconciler.report.explain.scale_down import marked_words, size_words
from reconciler.report.sentences import sentence
from reconciler.report.wording import counted, grouped, listed

NODE_POOLS = "nodepools.karpenter.sh"

# Fates of nodes, in report order.
_BECOME: tuple[tuple[Fate, str], ...] = (
    ("scaled", "removed as surplus"),
    ("drained", "drained"),
    ("removed", "removed by Karpenter"),
    ("replaced", "replaced by Karpenter"),
    ("deleted", "deleted with the NodePool"),
    ("blocked", "drifted but cannot be disrupted"),
    ("undrifted", "no longer drifted"),
    ("exchanged", "replaced by different machine types than before"),
)


def about_pool(scene: PlanningResult, name: str) -> Explanation:
    """All known facts about the pool: policy, NodePool, nodes."""
    pool = scene.inputs.desired.pool(name)
    live = [each for each in scene.inputs.observed.node_pools if each.name == name]
    nodes = scene.fleet.nodes_of(name)
    if pool is None and not live and not nodes:
        none = f"there is no pool {name}: no policy, NodePool or node has this name"
        raise UnknownSubject(unread(scene, NODE_POOLS, "nodes") or none)
    decisions = tuple(each for each in scene.plan.decisions if name in {each.pool, each.subject.name})
    decided = tuple(decided_rows(scene, decisions))
    outcomes = " ".join(filter(None, (_departing(scene, name), _coming(scene, name))))
    if outcomes or len(decided) > 1:
        outcome = outcomes or tally(scene, decisions)
        rows = (*decided, *_rows(scene, name))
    else:
        outcome = decided[0][1] if decided else "The pool matches the policies; nothing to do."
        rows = tuple(_rows(scene, name))
    return Explanation(f"pool/{name}", headline(scene, use_of(scene.fleet, name, 0)), outcome, rows, decisions)


def _departing(scene: PlanningResult, pool: str) -> str:
    """Such as: Of its 120 nodes, 6 are removed as surplus and 4 are drained."""
    size = counted(use_of(scene.fleet, pool, 0).nodes, "node")
    begins = f"Of its {size}, "
    # Keyed by prefix: Would apply if GpuPool/a100 were in mode Enforce: of its 12 nodes,
    by_condition: dict[str, Counter[Fate]] = {}
    for each in scene.plan.consequences:
        for _, part in by_guard(scene, each) if each.pool == pool and each.fate not in COMES else ():
            by_condition.setdefault(would_be(scene, part, begins), Counter())[part.fate] += len(part.nodes)
    return " ".join(f"{condition}{_become(nodes)}." for condition, nodes in by_condition.items())


def _become(nodes: Counter[Fate]) -> str:
    return listed(
        [f"{nodes[fate]} {'is' if nodes[fate] == 1 else 'are'} {words}" for fate, words in _BECOME if nodes[fate]]
    )


def _coming(scene: PlanningResult, pool: str) -> str:
    """Such as: 10 nodes are bought: 8 of p4d.24xlarge (reserved) and 2 of p4d.24xlarge (spot)."""
    by_condition: dict[str, Counter[str]] = {}  # keyed by condition
    for each in scene.plan.consequences:
        if each.pool == pool and each.fate == "bought" and each.order is not None:
            by_condition.setdefault(condition_of(scene, each), Counter())[each.order.words] += len(each.nodes)
    return " ".join(f"{condition}{_bought(sorts)}." for condition, sorts in by_condition.items())


def _bought(sorts: Counter[str]) -> str:
    number = sorts.total()
    parts = [f"{count} of {sort}" for sort, count in sorted(sorts.items())] if len(sorts) > 1 else list(sorts)
    return f"{counted(number, 'node')} {'is' if number == 1 else 'are'} bought: {listed(parts)}"


def headline(scene: PlanningResult, use: Use) -> str:
    """Utilization of the pool, as far as it is known."""
    if why := unread(scene, "nodes"):
        return why
    if why := unread(scene, "pods"):
        return f"{counted(use.nodes, 'node')}, {use.gpus_total} GPUs, GPUs in use unknown ({why})"
    used = f"{use.gpus_used} of {use.gpus_total} GPUs in use"
    return f"{counted(use.nodes, 'node')}, {use.busy_nodes} busy, {used}"


def _rows(scene: PlanningResult, name: str) -> Iterator[Row]:
    pool = scene.inputs.desired.pool(name)
    yield "policy", f"mode {pool.spec.mode}, {placed(pool.origin())}" if pool else "none: the pool is not managed"
    live = next((each for each in scene.inputs.observed.node_pools if each.name == name), None)
    if live is None:
        why = scene.inputs.observed.why_unread(NODE_POOLS)
        yield "NodePool", f"unknown: {why}" if why else "none"
    else:
        yield "NodePool", "managed by reconciler" if live.is_ours else "created by someone else"
    for consequence in scene.plan.consequences:
        if consequence.pool == name:
            cause = "because of this plan" if consequence.cause == "change" else "independent of this plan"
            if consequence.fate in COMES:
                yield cause, would_be(scene, consequence, coming_words(scene, consequence))
                continue
            for _, part in by_guard(scene, consequence):
                which = "which" if len(part.nodes) == 1 else "each of which"
                each = f"{counted(len(part.nodes), 'node')}, {which} {fate_of(scene, part)}"
                yield cause, would_be(scene, part, each)
    for evaluated in scene.plan.report(ScalingReport).sizes:
        if evaluated.pool == name:
            marked = f", {marked_words(scene, evaluated)}" if evaluated.marked else ""
            yield "scaled by", f"NodeProvisioner/{evaluated.provisioner}: target {evaluated.target}{marked}"
    if short := short_of(scene.plan.memory.shortages, name, scene.inputs.now):
        yield "unavailable", short_words(short)
    yield from freeze_rows(Freezes(scene.inputs, scene.fleet).of_pool(name))
    yield from guard_rows(scene, name)
    drifted = [claim for claim in scene.fleet.claims_of(name) if claim.says("Drifted")]
    if drifted:
        yield "drifted now", counted(len(drifted), "NodeClaim")


# --- Explanation of a NodeProvisioner: target size, planned actions, and what prevents them.


def about_provisioner(scene: PlanningResult, name: str) -> Explanation:
    """The NodeProvisioner's target, and its reasons."""
    declared = next((each for each in provisioners_now(scene.inputs) if each.name == name), None)
    if declared is None:
        raise UnknownSubject(f"there is no NodeProvisioner {name}")
    spec, title = declared.spec, f"provisioner/{name}"
    pool = scene.inputs.desired.pool(spec.pool_name)
    use = use_of(scene.fleet, spec.pool_name, pool.spec.devices.count if pool else 1)
    warm = f", {spec.warm_nodes} of them warm" if spec.warm_nodes else ""
    sizes = f"{spec.min_size} to {spec.max_size} nodes of {spec.pool_name}{warm}"
    policy = "policy", f"{sizes}, {placed(declared.origin())}"
    decisions = decisions_about(scene, ExplainedObject("NodeProvisioner", name))
    sentences = tuple(("told", decision_sentence(scene, each)) for each in decisions)
    if why := unread(scene, "nodes", "pods"):
        rows = (policy, ("target", why), *sentences)
        return Explanation(title, headline(scene, use), "The target is unknown.", rows, decisions)
    evaluated = next((each for each in scene.plan.report(ScalingReport).sizes if each.provisioner == name), None)
    if evaluated is None:
        why = "the NodeProvisioner is suspended" if spec.suspend else f"there is no GpuPool {spec.pool_name}"
        return Explanation(title, headline(scene, use), f"Inactive: {why}.", (policy, *sentences), decisions)
    rows = (policy, *_by_time(declared, scene.inputs.now), *_provisioner_rows(scene, evaluated))
    return Explanation(title, headline(scene, evaluated.use), _beside_target(evaluated), rows, decisions)


def _beside_target(evaluated: SizeEvaluation) -> str:
    more = evaluated.size - evaluated.target
    if not more:
        return "The pool has its target size."
    marked = f"; {evaluated.tainted} {'is' if evaluated.tainted == 1 else 'are'} marked" if evaluated.tainted else ""
    return f"The pool has {counted(abs(more), 'node')} {'more' if more > 0 else 'fewer'} than its target{marked}."


def _by_time(wish: Declared[NodeProvisioner], now: Instant) -> Iterator[Row]:
    """Each schedule with its sizes and times; and whether a window is open."""
    for number, each in enumerate(wish.spec.schedules):
        sizes = (("minSize", each.min_size), ("warmNodes", each.warm_nodes))
        requested = ", ".join(f"{field} {size}" for field, size in sizes if size is not None)
        moment = changes_at(each, now)
        position = "never" if moment is None else f"{'until' if is_open(each, now) else 'from'} {timestamp(moment)}"
        yield "schedule", f"{requested} {position}, {placed(wish.origin(f'spec.schedules[{number}]'))}"
    if shut := closed(wish.spec.windows, now):
        opens = f"until {timestamp(shut.until)}" if shut.until is not None else "forever"
        yield "windows", f"closed {opens}: no more nodes are marked"


def _provisioner_rows(scene: PlanningResult, evaluated: SizeEvaluation) -> Iterator[Row]:
    place = placed(evaluated.reason.origin)
    yield "target", f"{counted(evaluated.target, 'node')}: {size_words(evaluated)}. {place}"
    if words := marked_words(scene, evaluated):
        yield "marked", words
    yield from _about_to(scene, evaluated)
    still = [each for each in scene.standstills.values() if each.node.pool == evaluated.pool]
    left = evaluated.leaving_otherwise - sum(each.node.taint(names.DRAINING) is not None for each in still)
    if left > 0:
        yield "leaving", f"{counted(left, 'node')} drained, or removed by Karpenter"
    if evaluated.arriving:
        yield "arriving", counted(evaluated.arriving, "node")
    for consequence in scene.plan.consequences:
        is_on_the_way = consequence.order is not None and consequence.order.stage == "machine"
        if consequence.pool == evaluated.pool and consequence.fate in COMES and not is_on_the_way:
            label = "held back" if consequence.fate == "limited" else "buys"
            yield label, would_be(scene, consequence, coming_words(scene, consequence))
    if evaluated.pods:
        needed = counted(evaluated.missing, "more node")
        yield "demand", f"{counted(evaluated.pods, 'pod')} without a node; {needed} to be bought"
    for each in evaluated.limits:
        yield "limited by", sentence(each.reason)
    for decision in decisions_about(scene, ExplainedObject("NodeProvisioner", evaluated.provisioner)):
        if not any(each.reason == decision.reason for each in evaluated.limits):
            yield "decided", decision_sentence(scene, decision)
    yield from freeze_rows(Freezes(scene.inputs, scene.fleet).of_pool(evaluated.pool))
    yield from guard_rows(scene, evaluated.pool)


def _about_to(scene: PlanningResult, evaluated: SizeEvaluation) -> Iterator[Row]:
    """Actions of this plan for the pool, equal ones grouped."""
    pools = departing(scene.inputs, scene.plan)
    of_pool = [each for each in pools.values() if each.pool == evaluated.pool and not each.is_marked]
    new = [each for each in of_pool if each.at is not None]
    if new:
        yield "planned", f"mark {counted(len(new), 'more node')}, such as {new[0].node}"
    for guard, held in sorted(_held_by_guards(scene, {each.node for each in of_pool if each.at is None}).items()):
        yield "held", f"marking {counted(held, 'more node')}: held by {guard}"
    marked = {each.node for each in new}
    others = [
        each
        for each in scene.plan.decisions
        if each.planner == PLANNER and each.pool == evaluated.pool and each.subject.kind == "Node"
        if not isinstance(each.act, Hold) and each.subject.name not in marked
    ]
    for alike in grouped(others, lambda each: type(each.reason.facts)).values():
        yield "planned", f"{counted(len(alike), 'node')}: {decision_sentence(scene, alike[0])}"


def _held_by_guards(scene: PlanningResult, nodes: Set[str]) -> Counter[str]:
    """Number of these nodes held by each guard."""
    decisions = [each for each in scene.plan.decisions if each.planner == PLANNER and each.subject.name in nodes]
    holds = (each.reason.facts for each in decisions)
    return Counter(facts.guard.title for facts in holds if isinstance(facts, HeldByGuard))
