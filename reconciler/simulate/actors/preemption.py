"""kube-scheduler's preemption: unschedulable pods displace pods of lower priority.

Owner of the number of bound pods by priority: without lower priorities, nothing is evaluated. The preemptor is
nominated for the node of its victims, and displaces no other pods meanwhile.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Places
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.decision import pod_ref
from reconciler.plan.nodes.eviction import FOREVER, PodBudgets
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import ObjectWrite, is_finished, node_of
from reconciler.simulate.stage import Stage

# --- Victims on one node, by kube-scheduler's rules.
#
# All pods of lower priority are removed first; then each one that still fits is restored, in order of priority, those
# whose disruption budget would be violated first. Budgets are respected if possible.

_MAKES_POSITIVE = 2**31  # otherwise a few pods of negative priority would sum to more than one


class Harm(NamedTuple):
    """Compared in this order, the minimum is chosen; among equals the first node."""

    overdrawn: int  # pods whose budget would be violated
    highest: int  # highest priority of a victim
    priorities: int  # sum of priorities
    pods: int
    ran_for: int  # start of the earliest victim of the highest priority


class PreemptionVictims(msgspec.Struct, frozen=True):
    row: int
    pods: tuple[Pod, ...]
    harm: Harm


def victims_on(row: int, pod_class: PodClass, fleet: Snapshot, budgets: PodBudgets) -> PreemptionVictims | None:
    """None if the pod would not fit even without them."""
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
    """Whether both pods fit."""
    of_pod = fleet.classes.of(pod)
    fleet.add(of_pod, row)
    if fleet.part(FilterChain).fits(pod_class, row):
        return True
    fleet.remove(of_pod, row)
    return False


def _overdrawn(pods: Iterable[Pod], budgets: PodBudgets) -> set[str]:
    """Uids of the pods whose removal, in this order, would violate a budget."""
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
    """Sort key: highest priority first, then longest running."""
    return -pod.spec.priority, _began(pod), pod.title


def _began(pod: Pod) -> Instant:
    written = pod.status.start_time
    return instant(written) if written else FOREVER


Serves = Callable[[str, Sequence[str]], bool]  # name of the node, and uids of the victims

MANAGER = "kube-scheduler"
_WHY = "PreemptionByScheduler"
_LEAST_CANDIDATES, _ONE_IN = 100, 10  # minimum and share of candidate nodes


class Preempting:
    """Called for one pod at a time."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = stage.engine.stream("preemption")
        self._bound: Counter[int] = Counter()
        stage.world.follow(self._noted, "Pod")

    def node_for(self, fleet: Snapshot, pod: Pod, pod_class: PodClass, serves: Serves | None = None) -> str:
        """The nominated node after preemption; empty if preemption does not help.

        `serves`: whether an extender accepts a node without the victims.
        """
        nominated = pod.status.nominated_node_name
        if pod.spec.preemption_policy == "Never" or self._still_waits(fleet, pod, pod_class):
            return nominated
        if not self._is_anybody_below(pod.spec.priority):
            return ""
        candidates = (
            each
            for each in self._candidates(fleet, pod_class)
            if serves is None or serves(fleet.rows.node(each.row).name, [pod.metadata.uid for pod in each.pods])
        )
        best = min(candidates, key=lambda each: each.harm, default=None)
        if best is None:
            return ""
        node = fleet.rows.node(best.row).name
        rivals = [each for each in fleet.nominated if each.status.nominated_node_name == node]
        for each in rivals:
            if each.spec.priority < pod.spec.priority:
                self._stage.world.edit(pod_ref(each), {"status": {"nominatedNodeName": None}}, MANAGER)
        for each in best.pods:
            self._stage.world.disrupt(each, _WHY, MANAGER)
        return node

    def could_help(self, fleet: Snapshot, pod_class: PodClass, row: int) -> bool:
        """Whether the pod might fit without pods of lower priority."""
        if not self._is_anybody_below(pod_class.priority):
            return False
        return fleet.part(FilterChain).may_be_on(pod_class, row) and _could_do(row, pod_class, fleet)

    def _is_anybody_below(self, priority: int) -> bool:
        return any(count and each < priority for each, count in self._bound.items())

    def _still_waits(self, fleet: Snapshot, pod: Pod, pod_class: PodClass) -> bool:
        """Whether its victims are still terminating."""
        row = fleet.rows.row_of.get(pod.status.nominated_node_name)
        if row is None or not fleet.part(FilterChain).may_be_on(pod_class, row):
            return False
        return any(each.spec.priority < pod.spec.priority and _was_displaced(each) for each in fleet.pods_of_row(row))

    def _candidates(self, fleet: Snapshot, pod_class: PodClass) -> Iterator[PreemptionVictims]:
        """Stops at enough candidates, including one without budget violation."""
        rows = self._candidate_places(fleet, pod_class)
        wanted = max(_LEAST_CANDIDATES, len(rows) // _ONE_IN)
        budgets = PodBudgets(self._stage.world.observe().budgets)
        found, is_harmless = 0, False
        for row in rows.tolist():
            if not _could_do(row, pod_class, fleet):
                continue
            if (victims := victims_on(row, pod_class, fleet, budgets)) is not None:
                yield victims
                found += 1
                is_harmless |= not victims.harm.overdrawn
                if is_harmless and found >= wanted:
                    return

    def _candidate_places(self, fleet: Snapshot, pod_class: PodClass) -> Places:
        """Nodes where only other pods are in the way; of many, the start rotates."""
        order = fleet.rows.order
        allowed = fleet.part(FilterChain).static_mask(pod_class) & fleet.rows.alive
        rows: Places = order[allowed[order]]
        if pod_class.unmodelled:
            return rows[:0]
        if len(rows) <= _LEAST_CANDIDATES:
            return rows
        first = self._chance.randrange(len(rows))
        turned: Places = rows.take(range(first, first + len(rows)), mode="wrap")
        return turned

    def _noted(self, written: ObjectWrite) -> None:
        before, after = _priority(written.before), _priority(written.after)
        if before != after:
            if before is not None:
                self._bound[before] -= 1
            if after is not None:
                self._bound[after] += 1


def _could_do(row: int, pod_class: PodClass, fleet: Snapshot) -> bool:
    """Whether resources would suffice without all pods of lower priority."""
    free = {column: fleet.stock.free_at(row, column) for column, _ in pod_class.request}
    lower = [(each, count) for each, count in fleet.booked_on(row).items() if each.priority < pod_class.priority]
    for each, count in lower:
        for column, amount in each.held:
            if column in free:
                free[column] += amount * count
    return bool(lower) and all(free[column] >= amount for column, amount in pod_class.request)


def _was_displaced(pod: Pod) -> bool:
    return pod.metadata.leaving and any(each.reason == _WHY for each in pod.status.conditions)


def _priority(body: Object | None) -> int | None:
    """None for a pod that uses no resources of a node."""
    if body is None or not node_of(body) or is_finished(body):
        return None
    return int(body["spec"].get("priority") or 0)
