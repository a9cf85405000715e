"""Rules for evictions: obstacles of a pod's eviction, and PodDisruptionBudgets."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto

import msgspec

from reconciler.fleet.pod_classes import LabelClass
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import BudgetStatus, PodDisruptionBudget
from reconciler.model.instant import Instant, later, moment
from reconciler.plan.karpenter.budgets import nanoseconds


class EvictionObstacle(Enum):
    DO_NOT_DISRUPT = auto()
    SEVERAL_BUDGETS = auto()
    BUDGET_UNSEEN = auto()
    BUDGET_SPENT = auto()  # allows no disruption
    BUDGET_TAKEN = auto()  # the remaining disruptions are needed for other pods


# Budgets of one namespace that must be compared one by one, because no label distinguishes them. With more such
# budgets, each pod that they may select counts as selected by several, and can't be evicted.
MOST_COMPARED = 256
_MOST_LISTED = 8  # budgets listed for one pod; two already prevent its eviction

Weights = tuple[tuple[LabelClass, int], ...]  # number of healthy pods with equal labels

FOREVER = Instant(2**63 - 1)
_NEVER = Instant(-1)
_UNLIMITED = 2**63 - 1  # disruptions of pods without a budget
_NO_STATUS = BudgetStatus()


class PodBudgets:
    """Index of PodDisruptionBudgets by namespace and by one of their labels, with cached results."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        self._of_kin: dict[LabelClass, tuple[PodDisruptionBudget, ...]] = {}
        self._by_namespace: dict[str, _Namespace] = {}
        found = defaultdict(list)
        for each in budgets:
            # A budget without a selector selects nothing.
            if each.spec.selector is not None:
                found[each.metadata.namespace].append((each, each.spec.selector))
        for namespace, there in found.items():
            there.sort(key=lambda each: each[0].metadata.name)
            self._by_namespace[namespace] = _Namespace(there)

    def of(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Budgets that select the pod, by name."""
        there = self._by_namespace.get(pod.metadata.namespace)
        return there.of(pod.metadata.labels) if there is not None else ()

    def of_kin(self, kin: LabelClass) -> tuple[PodDisruptionBudget, ...]:
        """Budgets that select pods with these labels, cached."""
        if kin not in self._of_kin:
            there = self._by_namespace.get(kin.namespace)
            self._of_kin[kin] = there.of(kin.labels) if there is not None else ()
        return self._of_kin[kin]


class _IndexedBudget(msgspec.Struct, frozen=True, gc=False):
    """A budget, and the rest of its selector after the indexed label matches."""

    budget: PodDisruptionBudget
    labels: tuple[tuple[str, str], ...]
    selector: LabelSelector | None  # set if the selector has expressions

    def selects(self, labels: dict[str, str]) -> bool:
        for key, value in self.labels:
            if labels.get(key) != value:
                return False
        return self.selector is None or self.selector.matches(labels)


class _Namespace:
    def __init__(self, budgets: list[tuple[PodDisruptionBudget, LabelSelector]]) -> None:
        shared = Counter(label for _, selector in budgets for label in selector.match_labels.items())
        self._by_label: dict[str, dict[str, list[_IndexedBudget]]] = {}
        self._others: list[_IndexedBudget] = []
        for budget, selector in budgets:
            # The rarest label is the index: all budgets of a namespace may select one application.
            labels = sorted(selector.match_labels.items(), key=lambda label: (shared[label], label))
            kept = _IndexedBudget(budget, tuple(labels[1:]), selector if selector.match_expressions else None)
            if labels:
                key, value = labels[0]
                self._by_label.setdefault(key, {}).setdefault(value, []).append(kept)
            else:
                self._others.append(kept)

    def of(self, labels: dict[str, str]) -> tuple[PodDisruptionBudget, ...]:
        pod_disruption_budgets = _selecting(self._others, labels)
        for key, by_value in self._by_label.items():
            if key in labels:
                pod_disruption_budgets += _selecting(by_value.get(labels[key], ()), labels)
        return tuple(
            pod_disruption_budgets
            if len(pod_disruption_budgets) < 2
            else sorted(pod_disruption_budgets, key=lambda each: each.metadata.name)[:_MOST_LISTED]
        )


def _selecting(budgets: Sequence[_IndexedBudget], labels: dict[str, str]) -> list[PodDisruptionBudget]:
    if len(budgets) > MOST_COMPARED:
        return [each.budget for each in budgets[:2]]
    return [each.budget for each in budgets if each.selects(labels)]


def why_immovable(pod: Pod, budgets: PodBudgets, now: Instant) -> EvictionObstacle | None:
    """What prevents the eviction now; None if nothing does. The first rule that matches counts.

    DaemonSet pods are judged like any other pods. `pod.counts` tells whether a pod must move at all.
    """
    if pod.is_finished or pod.metadata.leaving:
        return None
    if stays_until(pod) > now:
        return EvictionObstacle.DO_NOT_DISRUPT
    selecting = budgets.of(pod)
    # A mirror pod exists as long as its node, and is never evicted.
    if not selecting or pod.is_mirror:
        return None
    # The API server refuses evictions of pods with several budgets, whatever the budgets allow.
    if len(selecting) > 1:
        return EvictionObstacle.SEVERAL_BUDGETS
    budget = selecting[0]
    is_unready = any(each.type == "Ready" and each.status == "False" for each in pod.status.conditions)
    if is_unready and budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return None
    if budget.status == _NO_STATUS:
        return EvictionObstacle.BUDGET_UNSEEN
    return EvictionObstacle.BUDGET_SPENT if budget.status.disruptions_allowed <= 0 else None


def stays_until(pod: Pod) -> Instant:
    """Until when the annotation do-not-disrupt protects the pod: FOREVER for true; for a duration, counted from the
    pod's start.
    """
    return stays_until_of(pod.metadata.annotations.do_not_disrupt, pod.status.start_time)


def stays_until_of(written: str, started: str) -> Instant:
    """The same for the value of an annotation and the start time of its object."""
    if not written:
        return _NEVER
    if written == "true":
        return FOREVER
    try:
        length_nanoseconds = nanoseconds(written)
    except ValueError:
        # Karpenter ignores unreadable values.
        return _NEVER
    if length_nanoseconds <= 0:
        return _NEVER
    began = moment(started)
    return FOREVER if began is None else later(began, -(-length_nanoseconds // 1_000_000))


class _Quota:
    """Remaining disruptions of a budget."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, pods: int) -> None:
        self.left = max(0, self.left - pods)


class Remaining:
    """Remaining disruptions of budgets while one plan moves or evicts pods. Mutable.

    The rules are those of the eviction API: pods that are not running do not count, and an unhealthy pod uses no
    disruption if its budget allows that, or if the budget has as many healthy pods as it wants.
    """

    def __init__(self, budgets: PodBudgets, left: Mapping[str, int] | None = None) -> None:
        self._budgets = budgets
        self._quotas = {title: _Quota(pods) for title, pods in (left or {}).items()}  # by the title of a budget
        self._of_kin: dict[LabelClass, _Quota] = {}

    def copy(self) -> "Remaining":
        """Independent copy for a trial."""
        return Remaining(self._budgets, {title: quota.left for title, quota in self._quotas.items()})

    def budgets_of(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        return self._budgets.of(pod)

    def why_not(self, pod: Pod) -> EvictionObstacle | None:
        """What prevents the eviction; None if nothing does."""
        budgets = () if weighs_nothing(pod) else self._budgets.of(pod)
        if not budgets:
            return None
        if len(budgets) > 1:
            return EvictionObstacle.SEVERAL_BUDGETS
        budget = budgets[0]
        if _is_unhealthy_enough(pod, budget):
            return None
        if _is_unseen(budget):
            return EvictionObstacle.BUDGET_UNSEEN
        if budget.status.disruptions_allowed <= 0:
            return EvictionObstacle.BUDGET_SPENT
        return None if self._quota(budget).left > 0 else EvictionObstacle.BUDGET_TAKEN

    def take(self, pod: Pod) -> None:
        """Use up disruptions for the pod. Used disruptions are not returned."""
        for budget in () if weighs_nothing(pod) else self._budgets.of(pod):
            if not _is_unhealthy_enough(pod, budget):
                self._quota(budget).take(1)

    def allow(self, ready: Weights) -> bool:
        """Whether no budget prevents the eviction of any of these pods; the same result as `why_not` for each pod."""
        quotas = self._of_kin
        for kin, _ in ready:  # noqa: SIM110 - runs for every node, and a generator is slow
            if (quotas.get(kin) or self._quota_of(kin)).left <= 0:
                return False
        return True

    def take_all(self, ready: Weights) -> None:
        """Use up disruptions for all these pods, after `allow` was true."""
        for kin, pods in ready:
            (self._of_kin.get(kin) or self._quota_of(kin)).take(pods)

    def _quota_of(self, kin: LabelClass) -> _Quota:
        """Quota for healthy pods with equal labels; unlimited without a budget."""
        budgets = self._budgets.of_kin(kin)
        is_clear = len(budgets) == 1 and not _is_unseen(budgets[0])
        quota = self._quota(budgets[0]) if is_clear else _Quota(0 if budgets else _UNLIMITED)
        self._of_kin[kin] = quota
        return quota

    def _quota(self, budget: PodDisruptionBudget) -> _Quota:
        quota = self._quotas.get(budget.title)
        if quota is None:
            quota = self._quotas[budget.title] = _Quota(budget.status.disruptions_allowed)
        return quota


def _is_unseen(budget: PodDisruptionBudget) -> bool:
    return budget.status == _NO_STATUS or budget.status.observed_generation < budget.metadata.generation


def weighs_nothing(pod: Pod) -> bool:
    """Whether budgets ignore the pod."""
    return pod.is_finished or pod.metadata.leaving or pod.status.phase == "Pending"


def _is_unhealthy_enough(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Whether the pod is not ready and may be evicted without using up a disruption."""
    if pod.is_ready:
        return False
    status = budget.status
    is_always_allowed = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
    return is_always_allowed or 0 < status.desired_healthy <= status.current_healthy
