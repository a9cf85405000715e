"""What keeps a gang where it is: a pod of it that may not leave, or that is where nothing is moved; or their budgets.

All of them leave at once, and so PodDisruptionBudgets must allow all of them together: the API server, asked pod by
pod by dry runs, would say yes to each.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.capacity.gangs import Gang, title_of
from reconciler.plan.drain.blockers import blocker
from reconciler.plan.drain.candidates import EligibilityContext, why_left_alone
from reconciler.plan.drain.codes.blockers import GangBudget, GangPodNotDrained, GangPodObserved, GangStays
from reconciler.plan.drain.context import DrainContext, DrainNode, ref_of_budget
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.nodes.eviction import EvictionObstacle, Remaining


class Obstacle(msgspec.Struct, frozen=True):
    """One pod in the way of its whole gang."""

    gang: Gang
    node: str  # where that pod is
    cause: Reason
    keeps_its_node: bool = False  # the cause is told of that node as it is

    def to(self, drain_node: DrainNode, pod: Pod) -> Reason:
        """To the node where another pod of the gang is."""
        if self.keeps_its_node and drain_node.name == self.node:
            return self.cause
        gang = title_of(self.gang)
        return drain_node.reason(GangStays(pod=pod_ref(pod), node=drain_node.name, gang=gang, why=self.cause))


def obstacle(context: DrainContext, members: Members, gang: Gang, remaining: Remaining) -> Obstacle | None:
    """The first; nothing where all may leave at once. What they cost of budgets is taken then."""
    return next(obstacles(context, members, gang, remaining), None)


def obstacles(context: DrainContext, members: Members, gang: Gang, remaining: Remaining) -> Iterator[Obstacle]:
    """All, one for each pod that is in the way; where none is, what they cost of budgets is taken at the end."""
    pods, eligibility = members.of[gang], EligibilityContext(context)
    is_told_only = all(context.is_report_only(each) for pod in pods if (each := context.by_name.get(pod.node)))
    trial, are_free = remaining.copy(), True
    for pod in pods:
        drain_node = context.by_name.get(pod.node)
        if drain_node is None:
            cause = Reason(GangPodNotDrained(pod=pod_ref(pod), place=pod.node))
            found = Obstacle(gang, pod.node, cause)
        elif not is_told_only and context.is_report_only(drain_node):
            cause = Reason(GangPodObserved(pod=pod_ref(pod), pool=drain_node.node.pool))
            found = Obstacle(gang, pod.node, cause)
        elif left_alone := why_left_alone(eligibility, drain_node):
            found = Obstacle(gang, pod.node, left_alone)
        elif reason := blocker(context, trial, drain_node, pod):
            reason = _of_all(context, drain_node, pod, pods) if _is_spent(remaining, trial, pod) else reason
            found = Obstacle(gang, pod.node, reason, keeps_its_node=True)
        else:
            trial.take(pod)
            continue
        are_free = False
        yield found
    for pod in pods if are_free else ():
        remaining.take(pod)


def _is_spent(remaining: Remaining, trial: Remaining, pod: Pod) -> bool:
    """Whether it is others of its own gang that need what its budget allows."""
    spent = {EvictionObstacle.BUDGET_TAKEN, EvictionObstacle.BUDGET_SPENT}
    return trial.why_not(pod) in spent and remaining.why_not(pod) is None


def _of_all(context: DrainContext, drain_node: DrainNode, pod: Pod, pods: Sequence[Pod]) -> Reason:
    (budget,) = context.budgets.of(pod)
    gang = title_of(context.draft.gangs.of(pod) or ("", ""))
    facts = GangBudget(
        pod=pod_ref(pod),
        node=drain_node.name,
        gang=gang,
        pods=len(pods),
        budget=ref_of_budget(budget),
        allowed=budget.status.disruptions_allowed,
    )
    return drain_node.reason(facts)
