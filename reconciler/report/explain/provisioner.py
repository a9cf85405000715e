"""Why a provisioner keeps as many nodes as it does, what it is about to do, and what keeps it from that."""

from collections import Counter
from collections.abc import Iterator, Set

from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.action import Hold
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Facts
from reconciler.model.plan.size_evaluation import SizeEvaluation
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.plan.explain.consequences import COMES
from reconciler.plan.explain.decisions import ExplainedObject, decisions_about
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.impact.scale_down import departing
from reconciler.plan.scaling.reasons import PLANNER
from reconciler.plan.sizes_by_time import provisioners_now
from reconciler.plan.sums.usage import use_of
from reconciler.plan.windows import changes_at, closed, is_open
from reconciler.report.explain.about import (
    Explanation,
    Row,
    UnknownSubject,
    coming_words,
    decision_sentence,
    placed,
    unread,
    would_be,
)
from reconciler.report.explain.pool import headline
from reconciler.report.explain.scale_down import marked_words, size_words
from reconciler.report.explain.standing_orders import freeze_rows, guard_rows
from reconciler.report.sentences import sentence
from reconciler.report.wording import counted


def about_provisioner(scene: PlanningResult, name: str) -> Explanation:
    """What it asks for, and the size that follows from how its pool is used now."""
    declared: Declared[NodeProvisioner] | None = next(
        (each for each in provisioners_now(scene.inputs) if each.name == name), None
    )
    if declared is None:
        raise UnknownSubject(f"there is no NodeProvisioner {name}")
    spec, title = declared.spec, f"provisioner/{name}"
    pool = scene.inputs.desired.pool(spec.pool_name)
    use = use_of(scene.fleet, spec.pool_name, pool.spec.devices.count if pool else 1)
    warm = f", {spec.warm_nodes} of them warm" if spec.warm_nodes else ""
    policy = (
        "policy",
        f"{spec.min_size} to {spec.max_size} nodes of {spec.pool_name}{warm}, {placed(declared.origin())}",
    )
    decisions = decisions_about(scene, ExplainedObject("NodeProvisioner", name))
    sentences = tuple(("told", decision_sentence(scene, each)) for each in decisions)
    if why := unread(scene, "nodes", "pods"):
        rows = (policy, ("target", why), *sentences)
        return Explanation(title, headline(scene, use), "Its target is not known.", rows, decisions)
    evaluated = next((each for each in scene.plan.sizes if each.provisioner == name), None)
    if evaluated is None:
        why = "it is suspended" if spec.suspend else f"no GpuPool is named {spec.pool_name}"
        return Explanation(title, headline(scene, use), f"It does nothing: {why}.", (policy, *sentences), decisions)
    rows = (policy, *_by_time(declared, scene.inputs.now), *_rows(scene, evaluated))
    return Explanation(title, headline(scene, evaluated.use), _beside_target(evaluated), rows, decisions)


def _beside_target(evaluated: SizeEvaluation) -> str:
    more = evaluated.size - evaluated.target
    if not more:
        return "As many nodes as its target."
    marked = f"; {evaluated.tainted} {'is' if evaluated.tainted == 1 else 'are'} marked" if evaluated.tainted else ""
    return f"{counted(abs(more), 'node')} {'more' if more > 0 else 'fewer'} than its target{marked}."


def _by_time(wish: Declared[NodeProvisioner], now: Instant) -> Iterator[Row]:
    """Each schedule: what it asks for, and until when it holds or when it begins; and whether a window is open."""
    for number, each in enumerate(wish.spec.schedules):
        sizes = (("minSize", each.min_size), ("warmNodes", each.warm_nodes))
        requested = ", ".join(f"{field} {size}" for field, size in sizes if size is not None)
        moment = changes_at(each, now)
        position = "never" if moment is None else f"{'until' if is_open(each, now) else 'from'} {timestamp(moment)}"
        yield "schedule", f"{requested} {position}, {placed(wish.origin(f'spec.schedules[{number}]'))}"
    if shut := closed(wish.spec.windows, now):
        opens = f"until {timestamp(shut.until)}" if shut.until is not None else "for ever"
        yield "windows", f"closed {opens}: no further node is marked"


def _rows(scene: PlanningResult, evaluated: SizeEvaluation) -> Iterator[Row]:
    place = placed(evaluated.reason.origin)
    yield "target", f"{counted(evaluated.target, 'node')}: {size_words(evaluated)}. {place}"
    if words := marked_words(scene, evaluated):
        yield "marked", words
    yield from _about_to(scene, evaluated)
    still = [each for each in scene.standstills.values() if each.node.pool == evaluated.pool]
    left = evaluated.leaving_otherwise - sum(each.node.taint(names.DRAINING) is not None for each in still)
    if left > 0:
        yield "leaving", f"{counted(left, 'node')} by other hands: drained, or by Karpenter"
    if evaluated.arriving:
        yield "arriving", counted(evaluated.arriving, "node")
    for consequence in scene.plan.consequences:
        is_on_the_way = consequence.order is not None and consequence.order.stage == "machine"
        if consequence.pool == evaluated.pool and consequence.fate in COMES and not is_on_the_way:
            yield (
                "held back" if consequence.fate == "limited" else "buys",
                would_be(scene, consequence, coming_words(scene, consequence)),
            )
    if evaluated.pods:
        needed = counted(evaluated.missing, "more node")
        yield "demand", f"{counted(evaluated.pods, 'pod')} without a place; {needed} to be bought"
    for each in evaluated.limits:
        yield "kept from", sentence(each.reason)
    for decision in decisions_about(scene, ExplainedObject("NodeProvisioner", evaluated.provisioner)):
        if not any(each.reason == decision.reason for each in evaluated.limits):
            yield "told", decision_sentence(scene, decision)
    yield from freeze_rows(Freezes(scene.inputs, scene.fleet).of_pool(evaluated.pool))
    yield from guard_rows(scene, evaluated.pool)


def _about_to(scene: PlanningResult, evaluated: SizeEvaluation) -> Iterator[Row]:
    """What this plan does for it, alike decisions together."""
    pools = departing(scene.inputs, scene.plan)
    of_pool = [each for each in pools.values() if each.pool == evaluated.pool and not each.is_marked]
    new = [each for each in of_pool if each.at is not None]
    if new:
        yield "about to", f"mark {counted(len(new), 'more node')}, such as {new[0].node}"
    for guard, held in sorted(_held_by_guards(scene, {each.node for each in of_pool if each.at is None}).items()):
        yield "kept from", f"marking {counted(held, 'more node')}: {guard} holds that"
    marked = {each.node for each in new}
    others = [
        each
        for each in scene.plan.decisions
        if each.planner == PLANNER and each.pool == evaluated.pool and each.subject.kind == "Node"
        if not isinstance(each.act, Hold) and each.subject.name not in marked
    ]
    groups: dict[type[Facts], list[Decision]] = {}
    for each in others:
        groups.setdefault(type(each.reason.facts), []).append(each)
    for alike in groups.values():
        yield "about to", f"{counted(len(alike), 'node')}: {decision_sentence(scene, alike[0])}"


def _held_by_guards(scene: PlanningResult, nodes: Set[str]) -> Counter[str]:
    """How many of these nodes each guard holds."""
    decisions = [each for each in scene.plan.decisions if each.planner == PLANNER and each.subject.name in nodes]
    holds = (each.reason.facts for each in decisions)
    return Counter(facts.guard.title for facts in holds if isinstance(facts, HeldByGuard))
