"""What keeps a gang where it is: a pod of it that may not leave, or that is where nothing is moved; or their budgets.

All of them leave at once, and so PodDisruptionBudgets must allow all of them together: the API server, asked pod by
pod by dry runs, would say yes to each.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.planned.reason import Reason
from reconciler.plan.drain import reasons
from reconciler.plan.drain.blockers import blocker
from reconciler.plan.drain.candidates import Ground, why_left_alone
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.site import Seen, Site, why
from reconciler.plan.eviction import BUDGET_SPENT, BUDGET_TAKEN, Remaining
from reconciler.plan.explain import sentence
from reconciler.plan.requests.gangs import Gang, title_of


class Obstacle(msgspec.Struct, frozen=True):
    """One pod in the way of its whole gang."""

    gang: Gang
    node: str  # where that pod is
    told: str
    reason: Reason | None = None  # of that node, where it is among those that are looked at

    def to(self, seen: Seen, pod: Pod) -> Reason:
        """To the node where another pod of the gang is."""
        if self.reason is not None and seen.name == self.node:
            return self.reason
        return why(seen, reasons.GANG, pod=f"Pod/{pod.title}", gang=title_of(self.gang), why=self.told)


def obstacle(site: Site, members: Members, gang: Gang, remaining: Remaining) -> Obstacle | None:
    """The first; nothing where all may leave at once. What they cost of budgets is taken then."""
    return next(obstacles(site, members, gang, remaining), None)


def obstacles(site: Site, members: Members, gang: Gang, remaining: Remaining) -> Iterator[Obstacle]:
    """All, one for each pod that is in the way; where none is, what they cost of budgets is taken at the end."""
    pods, ground = members.of[gang], Ground(site)
    is_told_only = all(site.is_only_told(each) for pod in pods if (each := site.by_name.get(pod.node)))
    trial, are_free = remaining.copy(), True
    for pod in pods:
        seen = site.by_name.get(pod.node)
        if seen is None:
            found = Obstacle(gang, pod.node, f"Pod/{pod.title} runs on {pod.node}, where no drain moves anything")
        elif not is_told_only and site.is_only_told(seen):
            found = Obstacle(gang, pod.node, f"Pod/{pod.title} runs in {seen.node.pool}, which is only observed")
        elif left_alone := why_left_alone(ground, seen):
            found = Obstacle(gang, pod.node, _told(left_alone))
        elif reason := blocker(site, trial, seen, pod):
            reason = _of_all(site, seen, pod, pods) if _is_spent(remaining, trial, pod) else reason
            found = Obstacle(gang, pod.node, _told(reason), reason)
        else:
            trial.take(pod)
            continue
        are_free = False
        yield found
    for pod in pods if are_free else ():
        remaining.take(pod)


def _is_spent(remaining: Remaining, trial: Remaining, pod: Pod) -> bool:
    """Whether it is others of its own gang that need what its budget allows."""
    return trial.why_not(pod) in {BUDGET_TAKEN, BUDGET_SPENT} and not remaining.why_not(pod)


def _of_all(site: Site, seen: Seen, pod: Pod, pods: Sequence[Pod]) -> Reason:
    (budget,) = site.budgets.of(pod)
    gang = title_of(site.draft.gangs.of(pod) or ("", ""))
    facts: dict[str, str | int] = {
        "budget": budget.title,
        "allowed": budget.status.disruptions_allowed,
        "pods": len(pods),
    }
    return why(seen, reasons.GANG_BUDGET, pod=f"Pod/{pod.title}", gang=gang, **facts)


def _told(reason: Reason) -> str:
    return sentence(reason).removesuffix(".")
