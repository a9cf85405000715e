"""Whom a pod would displace on one node: kube-scheduler's own rules for what is the least harm.

All pods of a lower priority are taken away at first; then, the important ones first, each comes back that still fits:
those whose disruption budget would be overdrawn before all others. Budgets are minded as long as that is possible.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, instant
from reconciler.plan.nodes.eviction import FOREVER, PodBudgets

_MAKES_POSITIVE = 2**31  # or a few pods of a negative priority would weigh more than one


class Harm(NamedTuple):
    """Compared in this order, the least is chosen; of equals the first node."""

    overdrawn: int  # pods whose budget allows no more
    highest: int  # priority
    priorities: int  # all together
    pods: int
    ran_for: int  # of the most important ones, the one that began first


class PreemptionVictims(msgspec.Struct, frozen=True):
    """Of one node."""

    row: int
    pods: tuple[Pod, ...]
    harm: Harm


def victims_on(row: int, pod_class: PodClass, fleet: Snapshot, budgets: PodBudgets) -> PreemptionVictims | None:
    """None where it would not fit even without all of them."""
    lower = sorted((each for each in fleet.pods_of_row(row) if each.spec.priority < pod_class.priority), key=_rank)
    if not lower:
        return None
    judging = fleet.part(FilterChain)
    with fleet.fork():
        for each in lower:
            fleet.remove(fleet.classes.of(each), row)
        if not judging.fits(pod_class, row):
            return None
        overdrawn = _overdrawn(lower, budgets)
        in_turn = sorted(lower, key=lambda pod: pod.metadata.uid not in overdrawn)
        chosen = [each for each in in_turn if not _stays(each, row, pod_class, fleet)]
    if not chosen:
        return None
    chosen.sort(key=_rank)
    return PreemptionVictims(row, tuple(chosen), _harm(chosen, overdrawn))


def _stays(pod: Pod, row: int, pod_class: PodClass, fleet: Snapshot) -> bool:
    """Whether there is room for both."""
    of_pod = fleet.classes.of(pod)
    fleet.add(of_pod, row)
    if fleet.part(FilterChain).fits(pod_class, row):
        return True
    fleet.remove(of_pod, row)
    return False


def _overdrawn(pods: Iterable[Pod], budgets: PodBudgets) -> set[str]:
    """Uids of those with which a budget would be overdrawn, if all of them went in this order."""
    left: dict[str, int] = {}
    result: set[str] = set()
    for pod in pods:
        for each in budgets.of(pod) if pod.metadata.labels else ():
            if pod.name in each.status.disrupted_pods:
                continue
            left[each.title] = left.get(each.title, each.status.disruptions_allowed) - 1
            if left[each.title] < 0:
                result.add(pod.metadata.uid)
    return result


def _harm(pods: Sequence[Pod], overdrawn: set[str]) -> Harm:
    highest = pods[0].spec.priority
    return Harm(
        sum(each.metadata.uid in overdrawn for each in pods),
        highest,
        sum(each.spec.priority + _MAKES_POSITIVE for each in pods),
        len(pods),
        -min(_began(each) for each in pods if each.spec.priority == highest),
    )


def _rank(pod: Pod) -> tuple[int, Instant, str]:
    """The important ones first, and of those the ones that have run for longest."""
    return -pod.spec.priority, _began(pod), pod.title


def _began(pod: Pod) -> Instant:
    written = pod.status.start_time
    return instant(written) if written else FOREVER
