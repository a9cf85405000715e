"""Facts behind explanations: decisions about a subject, guards that hold consequences, pods that block a drain, and
nodes where a pod would fit."""

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
    """The subject of an explanation."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def title(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def decisions_about(scene: PlanningResult, *subjects: ExplainedObject) -> tuple[Decision, ...]:
    """Decisions about objects of these kinds and names, and about pods evicted together with others, in plan order."""
    wanted = {(each.kind.lower(), each.namespace, each.name) for each in subjects}
    return tuple(
        each
        for each in scene.plan.decisions
        if any((ref.kind.lower(), ref.namespace, ref.name) in wanted for ref in each.refs)
    )


# --- Guards that hold a consequence, or a part of it.

# Fates of nodes that do not exist yet.
COMES: frozenset[Fate] = frozenset({"bought", "scheduled", "limited"})


def by_guard(scene: PlanningResult, consequence: Consequence) -> Iterator[tuple[Ref | None, Consequence]]:
    """Parts of the consequence by guard; the part that no guard holds comes first."""
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
    """The guard that holds the cause: the edit of the NodePool, or the actions on its nodes. No guard holds a purchase,
    except replacements of nodes removed by an edit."""
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


# --- Pods that block a drain of a node, each with its reason.


def blocking_reasons(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    """Empty if the reason of the node already says the same."""
    reasons = _held(scene, weighed) if isinstance(weighed.reason.facts, BeingDrained) else _keep(scene, weighed)
    return reasons if reasons != [weighed.reason] else []


def _keep(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    if weighed.is_candidate:
        return []
    reasons = keepers(scene.inputs, Draft(scene.fleet, scene.inputs.desired), weighed.node)
    # A plan counts nodes without capacity once for equal pods; here the count is for one pod.
    return [weighed.reason if _is_without_place(each, weighed.reason) else each for each in reasons]


def _is_without_place(reason: Reason, before: Reason) -> bool:
    is_one = isinstance(reason.facts, PodWithoutPlace) and isinstance(before.facts, PodWithoutPlace)
    return is_one and pod_of(reason) == pod_of(before)


def _held(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    """Pods of a node being drained that cannot be evicted now, in plan order."""
    pods = {(pod.metadata.namespace, pod.name) for pod in scene.fleet.pods_on(weighed.node)}
    return [
        each.reason
        for each in scene.plan.decisions
        if each.planner == PLANNER and each.subject.kind == "Pod" and isinstance(each.act, Hold)
        if (each.subject.namespace, each.subject.name) in pods
    ]


# --- Nodes on which a pod would fit, and why the others are rejected.


def refusals_by_node(scene: PlanningResult, pod: Pod) -> Counter[Obstacle]:
    """First reasons of the other nodes to reject the pod, with counts."""
    others = (node.name for node in scene.inputs.observed.nodes if node.name != pod.node)
    return Counter(reasons[0] for name in others if (reasons := fits(scene.fleet.snapshot, pod, name)))
