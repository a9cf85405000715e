"""Pods of one node that are kept for the same reason: what lifts it is done to all of them at once.

Otherwise candidates would have to be looked for again after each of a hundred pods.
"""

from collections.abc import Iterator

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.drain_eligibility import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Reason
from reconciler.plan.draft import Draft
from reconciler.plan.drain.blockers import blocker, stays
from reconciler.plan.drain.codes.blockers import (
    BudgetBlocker,
    PodBlocker,
    PodBudgetSpent,
    PodBudgetUnseen,
    PodControllerGone,
    PodDoNotDisrupt,
    PodNotSafeToEvict,
    PodOfClaim,
    PodPlaceUnknown,
    PodRunsToCompletion,
    PodWithLocalStorage,
    PodWithoutController,
    SmartPodStays,
    SystemPod,
)
from reconciler.plan.drain.context import DrainContext
from reconciler.plan.nodes.eviction import Remaining

# Each such pod keeps the node, whatever becomes of the others; those of one budget go with one edit of it.
_OF_EACH = frozenset(
    {
        PodRunsToCompletion,
        PodDoNotDisrupt,
        PodNotSafeToEvict,
        SmartPodStays,
        PodOfClaim,
        PodWithoutController,
        PodControllerGone,
        PodWithLocalStorage,
        SystemPod,
        PodPlaceUnknown,
        PodBudgetUnseen,
        PodBudgetSpent,
    }
)


def all_like(inputs: Inputs, weighed: DrainEligibility) -> Iterator[Reason]:
    """The reason itself first, then those of other pods there that say the same."""
    yield weighed.reason
    if type(weighed.reason.facts) not in _OF_EACH:
        return
    context = DrainContext(inputs, Draft(Fleet(inputs.observed), inputs.desired))
    remaining, drain_node = Remaining(context.budgets), context.by_name[weighed.node]
    known = {_of(weighed.reason)}
    for pod in context.fleet.pods_on(weighed.node):
        reason = blocker(context, remaining, drain_node, pod) if stays(pod) else None
        if reason is not None and type(reason.facts) is type(weighed.reason.facts) and _of(reason) not in known:
            known.add(_of(reason))
            yield reason


def _of(reason: Reason) -> object:
    match reason.facts:
        case BudgetBlocker(budgets=budgets):
            return budgets
        case PodBlocker(pod=pod):
            return pod
    return None
