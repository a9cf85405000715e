"""Which pods keep a node from being emptied, in words: a row a pod, and no more than can be read."""

from collections.abc import Iterator

from reconciler.model.plan.drain_eligibility import DrainEligibility
from reconciler.model.plan.reason import Reason
from reconciler.plan.drain.backoff.keepers import pod_of
from reconciler.plan.drain.codes.eligibility import BeingDrained
from reconciler.plan.explain.blocking_pods import blocking_reasons
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.report.explain.about import Row
from reconciler.report.sentences import sentence

MOST_LISTED = 10


def keeping_rows(scene: PlanningResult, weighed: DrainEligibility) -> Iterator[Row]:
    reasons = blocking_reasons(scene, weighed)
    if not isinstance(weighed.reason.facts, BeingDrained):
        reasons = sorted(reasons, key=_order)
    for each in reasons[:MOST_LISTED]:
        yield "kept by", sentence(each)
    if more := reasons[MOST_LISTED:]:
        yield "kept by", f"and {len(more)} more"


def _order(reason: Reason) -> tuple[str, str]:
    """By the pod that keeps the node."""
    pod = pod_of(reason)
    return pod.title if pod is not None else "", sentence(reason)
