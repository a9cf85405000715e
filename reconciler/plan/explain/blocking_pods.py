"""Which pods keep a node from being emptied, each with its reason."""

from reconciler.model.plan.action import Hold
from reconciler.model.plan.drain_eligibility import DrainEligibility
from reconciler.model.plan.reason import Reason
from reconciler.plan.draft import Draft
from reconciler.plan.drain.backoff.keepers import keepers, pod_of
from reconciler.plan.drain.codes.blockers import PodWithoutPlace
from reconciler.plan.drain.codes.eligibility import BeingDrained
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.files.planning_result import PlanningResult


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
