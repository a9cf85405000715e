"""Facts behind explanations: decisions about a subject, guards that hold consequences, pods that keep a node, and
nodes where a pod would fit.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from reconciler.fleet.questions import fits
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Decision, Hold, Obstacle, Reason, Ref
from reconciler.model.plan.evaluation import DrainEligibility
from reconciler.plan.draft import Draft
from reconciler.plan.drain.codes.blockers import BeingDrained, PodWithoutPlace
from reconciler.plan.drain.placement_search import keepers, pod_of
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.reasons import HeldByGuard


class ExplainedObject(msgspec.Struct, frozen=True):
    """The subject that a person asked about."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def title(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def decisions_about(scene: PlanningResult, *subjects: ExplainedObject) -> tuple[Decision, ...]:
    """In the order of the plan: of objects of these kinds and names, and of pods that leave with others."""
    wanted = {(each.kind.lower(), each.namespace, each.name) for each in subjects}
    return tuple(
        each
        for each in scene.plan.decisions
        if any((ref.kind.lower(), ref.namespace, ref.name) in wanted for ref in each.refs)
    )


# --- Which guard holds a consequence, or a part of it.

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


# --- Which pods keep a node from being emptied, each with its reason.


def blocking_reasons(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    """Nothing where it is what is known of the node already."""
    reasons = _held(scene, weighed) if isinstance(weighed.reason.facts, BeingDrained) else _keep(scene, weighed)
    return reasons if reasons != [weighed.reason] else []


def _keep(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    if weighed.is_candidate:
        return []
    reasons = keepers(scene.inputs, Draft(scene.fleet, scene.inputs.desired), weighed.node)
    # Nodes that had no room are counted in a plan once for pods that are alike; of one pod let there be one count.
    return [weighed.reason if _is_without_place(each, weighed.reason) else each for each in reasons]


def _is_without_place(reason: Reason, before: Reason) -> bool:
    is_one = isinstance(reason.facts, PodWithoutPlace) and isinstance(before.facts, PodWithoutPlace)
    return is_one and pod_of(reason) == pod_of(before)


def _held(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    """Of a node that is being emptied: its pods that can't be asked to leave now, in the order of the plan."""
    pods = {(pod.metadata.namespace, pod.name) for pod in scene.fleet.pods_on(weighed.node)}
    return [
        each.reason
        for each in scene.plan.decisions
        if each.planner == PLANNER and each.subject.kind == "Pod" and isinstance(each.act, Hold)
        if (each.subject.namespace, each.subject.name) in pods
    ]


# --- On which nodes a pod would fit, and what keeps it from the others.


def refusals_by_node(scene: PlanningResult, pod: Pod) -> Counter[Obstacle]:
    """How many of the other nodes have which first reason not to take the pod."""
    others = (node.name for node in scene.inputs.observed.nodes if node.name != pod.node)
    return Counter(reasons[0] for name in others if (reasons := fits(scene.fleet.snapshot, pod, name)))
