"""Pods that fit nowhere displace less important ones: kube-scheduler's preemption.

Owner of how many bound pods there are of each priority: where nobody is less important, nothing is looked at. The pod
is nominated for the node whose victims it waits for, and displaces nobody else meanwhile.
"""

from collections import Counter
from collections.abc import Iterator

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Places
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.action import Ref
from reconciler.plan.nodes.eviction import PodBudgets
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.conditions import condition, with_condition
from reconciler.simulate.actors.scheduler.victims import PreemptionVictims, victims_on
from reconciler.simulate.objects import ObjectWrite, key_of
from reconciler.simulate.stage import Stage

MANAGER = "kube-scheduler"
_WHY = "PreemptionByScheduler"
_ENDED = frozenset({"Succeeded", "Failed"})
_LEAST_CANDIDATES, _ONE_IN = 100, 10  # so many nodes are enough to choose from


class Preempting:
    """Asked about one pod after the other."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = stage.engine.stream("preemption")
        self._bound: Counter[int] = Counter()
        for body in stage.world.of("Pod"):
            self._noted(ObjectWrite(key_of(body), None, body))
        stage.world.subscribe(self._noted, "Pod")

    def node_for(self, fleet: Snapshot, pod: Pod, pod_class: PodClass) -> str:
        """The node that others leave for it, as of now; nothing where that would not help."""
        nominated = pod.status.nominated_node_name
        if pod.spec.preemption_policy == "Never" or self._still_waits(fleet, pod, pod_class):
            return nominated
        if not self._is_anybody_below(pod.spec.priority):
            return ""
        best = min(self._candidates(fleet, pod_class), key=lambda each: each.harm, default=None)
        if best is None:
            return ""
        node = fleet.rows.node(best.row).name
        rivals = [each for each in fleet.nominated if each.status.nominated_node_name == node]
        for each in rivals:
            if each.spec.priority < pod.spec.priority:
                self._stage.world.edit(_ref(each), {"status": {"nominatedNodeName": None}}, MANAGER)
        for each in best.pods:
            self._displace(each)
        return node

    def could_help(self, fleet: Snapshot, pod_class: PodClass, row: int) -> bool:
        """Whether there might be room on a node if less important pods left it."""
        if not self._is_anybody_below(pod_class.priority):
            return False
        return fleet.part(FilterChain).may_be_on(pod_class, row) and _could_do(row, pod_class, fleet)

    def _is_anybody_below(self, priority: int) -> bool:
        return any(count and each < priority for each, count in self._bound.items())

    def _still_waits(self, fleet: Snapshot, pod: Pod, pod_class: PodClass) -> bool:
        """Whether those that it displaced are still on their way out."""
        row = fleet.rows.row_of.get(pod.status.nominated_node_name)
        if row is None or not fleet.part(FilterChain).may_be_on(pod_class, row):
            return False
        return any(each.spec.priority < pod.spec.priority and _was_displaced(each) for each in fleet.pods_of_row(row))

    def _candidates(self, fleet: Snapshot, pod_class: PodClass) -> Iterator[PreemptionVictims]:
        """As soon as there are enough, and one among them that overdraws no budget, the rest is not looked at."""
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
        """Nodes where only other pods are in its way; of many another is the first each time."""
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

    def _displace(self, pod: Pod) -> None:
        """It gets its grace, as with any deletion."""
        world, ref = self._stage.world, _ref(pod)
        body = world.get(ref)
        if body is None or pod.metadata.leaving:
            return
        entries = condition("DisruptionTarget", "True", self._stage.now, _WHY)
        world.edit(ref, {"status": {"conditions": with_condition(body, entries)}}, MANAGER)
        world.delete(ref, MANAGER)

    def _noted(self, written: ObjectWrite) -> None:
        if written.key[0] != "Pod":
            return
        before, after = _priority(written.before), _priority(written.after)
        if before != after:
            if before is not None:
                self._bound[before] -= 1
            if after is not None:
                self._bound[after] += 1


def _could_do(row: int, pod_class: PodClass, fleet: Snapshot) -> bool:
    """Whether the amounts would be enough without any of the less important pods."""
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
    """None where it takes nothing of a node."""
    if body is None or not body["spec"].get("nodeName") or (body.get("status") or {}).get("phase") in _ENDED:
        return None
    return int(body["spec"].get("priority") or 0)


def _ref(pod: Pod) -> Ref:
    return Ref("Pod", pod.metadata.namespace, pod.name)
