"""Binds pending pods to nodes, by priority and age; pods of lower priority are preempted.

Owner of the scheduling queue, and of nodes with newly freed capacity. An unschedulable pod gets a condition, which
Karpenter reacts to, and is retried when a suitable node has changed. Pods of the second scheduler with a GpuClaim are
placed and bound by the scheduler extender, if there is one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush

import msgspec
import numpy as np

from reconciler.fleet.filters.chain import ActivePredicates, FilterChain
from reconciler.fleet.filters.nominated import Nominated
from reconciler.fleet.pod_classes import Needs, PodClass
from reconciler.fleet.rows import Mask, Places
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Ref
from reconciler.model.plan.inputs import ClaimScheduler
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.preemption import MANAGER, Preempting
from reconciler.simulate.extender import SimulatedExtender, asks_extender
from reconciler.simulate.objects import (
    Key,
    ObjectWrite,
    annotations_of,
    condition,
    is_finished,
    is_leaving,
    is_unschedulable,
    node_of,
    with_condition,
)
from reconciler.simulate.stage import Stage

# --- Node scoring as by kube-scheduler's defaults, as far as relevant.
#
# Nodes with an untolerated PreferNoSchedule taint come last. Among the others, the node with the most free cpu and
# memory share; then by name.

_WEIGHED = ("cpu", "memory")


def choose(fleet: Snapshot, pod_class: PodClass, mask: Mask) -> int | None:
    """The chosen row; None if there is none."""
    order = fleet.rows.order
    rows: Places = order[mask[order]]
    if not len(rows):
        return None
    if (avoided := avoided_nodes(fleet, pod_class.needs)) is not None:
        best = rows[~avoided[rows]]
        rows = best if len(best) else rows
    left = np.zeros(len(rows))
    amounts = dict(pod_class.request)
    for name in _WEIGHED:
        column = fleet.classes.columns[name]
        had = fleet.stock.allocatable[rows, column]
        free = fleet.stock.free_of(column)[rows] - amounts.get(column, 0)
        left += free / np.maximum(had, 1)
    return int(rows[int(left.argmax())])


def avoided_nodes(fleet: Snapshot, needs: Needs) -> Mask | None:
    """Nodes with an untolerated PreferNoSchedule taint; None if there are none."""
    soft = [
        any(each.effect == "PreferNoSchedule" and not needs.tolerance.bears(each) for each in taints)
        for taints, _ in fleet.rows.taint_groups
    ]
    if not any(soft):
        return None
    mask: Mask = np.array(soft, bool)[fleet.rows.taint_group]
    return mask


# --- Owner of the pending pods, in groups with equal feasible nodes; each group by priority, then age.
#
# A group whose first pod is unschedulable is parked until some node has more capacity, since its other pods fit nowhere
# either. A preemptor is a group of its own: only it may use its nominated node.

Rank = tuple[int, str, int]  # highest priority first, then oldest, then in order of arrival


class QueuedPod(msgspec.Struct, frozen=True, order=True):
    """Ordered by rank, which no two have in common."""

    rank: Rank
    key: Key
    uid: str
    pod_class: PodClass
    displaces: bool  # whether the pod may preempt others
    is_nominated: bool

    @property
    def group(self) -> object:
        return nominated_group(self.uid) if self.is_nominated else (group_of(self.pod_class), self.displaces)


class SchedulingGroup(msgspec.Struct):
    """Pods with equal feasible nodes."""

    pods: list[QueuedPod] = []  # a heap
    unreported: list[QueuedPod] = []  # pods without the unschedulable condition


class SchedulingQueue:
    def __init__(self) -> None:
        self.groups: dict[object, SchedulingGroup] = {}
        self._active: dict[object, None] = {}
        self.parked: set[object] = set()  # groups whose other pods are skipped in this round

    def push(self, pod: QueuedPod) -> None:
        self.put_back(pod)
        self.groups[pod.group].unreported.append(pod)
        self._active[pod.group] = None

    def put_back(self, pod: QueuedPod) -> None:
        """Returns a pod to the queue; its group is retried after a change."""
        heappush(self.groups.setdefault(pod.group, SchedulingGroup()).pods, pod)

    def wake(self, group: object) -> None:
        self._active[group] = None

    def round(self) -> Iterator[tuple[object, QueuedPod]]:
        """The pods of active groups, in order; groups that are parked meanwhile are skipped."""
        awake = [each for each in self._active if each in self.groups]
        heads = [(self.groups[each].pods[0].rank, number, each) for number, each in enumerate(awake)]
        self.parked.clear()
        self._active.clear()
        heapify(heads)
        while heads:
            _, number, group = heappop(heads)
            yield group, heappop(self.groups[group].pods)
            if not self.groups[group].pods:
                del self.groups[group]
            elif group not in self.parked:
                heappush(heads, (self.groups[group].pods[0].rank, number, group))

    def unreported(self, group: object) -> list[QueuedPod]:
        """The group's pods without the unschedulable condition; each is returned once."""
        scheduling_group = self.groups[group]
        queued_pods, scheduling_group.unreported = scheduling_group.unreported, []
        return queued_pods


def group_of(pod_class: PodClass) -> object:
    """Pods of one group fit the same nodes, unless other pods interfere."""
    if pod_class.is_plain:
        return pod_class.needs.number, pod_class.request, pod_class.unmodelled
    return pod_class.number


def nominated_group(uid: str) -> object:
    return "nominated", uid


_DELAY_MS = 50
_NOWHERE = "Unschedulable"
_BACKOFF_MS = 1_000  # after an extender that did not answer or bind
_FLUSH_MS = 300_000  # an extender tells no event: kube-scheduler tries its pods again after five minutes


class Scheduler:
    """One scheduler for all pods, regardless of schedulerName, except for questions to the extender."""

    def __init__(self, extender: SimulatedExtender | None = None, of_claims: ClaimScheduler = "external") -> None:
        """`of_claims`: what binds pods with a GpuClaim of the second scheduler."""
        self._extender = extender
        self._leaves_claims = of_claims == "builtin"
        self._retried: set[object] = set()  # groups with a retry to come
        self._queue = SchedulingQueue()
        self._new: dict[Key, None] = {}
        self._eased: dict[str, None] = {}  # names of nodes that may have more capacity
        self._is_due = False
        self._numbers = 0
        self._fleet: Snapshot | None = None

    def start(self, stage: Stage) -> None:
        self._stage = stage
        stage.world.follow(self._noted, "Node", "Pod")
        self._preempting = Preempting(stage)

    def _noted(self, written: ObjectWrite) -> None:
        kind, before, after = written.key[0], written.before, written.after
        if kind == "Node":
            if after is not None and (before is None or _differ(before, after)):
                self._ease(written.key[2])
        else:
            self._note_nomination(before, after)
            if after is not None and _waits(after):
                if before is None or not _waits(before):
                    self._new[written.key] = None
                    self._wake()
            elif before is not None and (after is None or is_finished(after) > is_finished(before)):
                self._ease(node_of(before))

    def _note_nomination(self, before: Object | None, after: Object | None) -> None:
        """When a nomination ends, other pods may use the node, and the pod needs another one."""
        was, is_now = (((each or {}).get("status") or {}).get("nominatedNodeName") for each in (before, after))
        if before is not None and was and was != is_now:
            self._ease(was)
            self._queue.wake(nominated_group(before["metadata"]["uid"]))

    def _ease(self, node: str) -> None:
        if node and (self._queue.groups or self._new):
            self._eased[node] = None
            self._wake()

    def _wake(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._stage.engine.after(_DELAY_MS, "pods are scheduled", self._schedule)

    def _schedule(self) -> None:
        self._is_due = False
        fleet = self._stage.snapshot()
        if fleet is not self._fleet:
            self._begin_anew(fleet)
        self._take_new(fleet)
        self._wake_groups(fleet)
        aside = []
        for group, pod in self._queue.round():
            if not self._placed(fleet, group, pod):
                aside.append(self._as_it_waits(pod))
            self._stage.snapshot()  # the next snapshot includes the changes of this round
        for pod in aside:
            self._queue.put_back(pod)

    def _begin_anew(self, fleet: Snapshot) -> None:
        """Rebuilds the queue, since classes belong to one snapshot. Keeps the order of arrival."""
        waiting = sorted(pod for group in self._queue.groups.values() for pod in group.pods)
        self._new = {pod.key: None for pod in waiting} | self._new
        self._queue = SchedulingQueue()
        self._fleet = fleet

    def _take_new(self, fleet: Snapshot) -> None:
        for key in self._new:
            pod, body = self._stage.world.read_object(key), self._stage.world.at(key)
            if pod is None or body is None or not _waits(body) or (self._leaves_claims and asks_extender(pod)):
                continue
            self._numbers += 1
            rank = (-pod.spec.priority, pod.metadata.creation_timestamp, self._numbers)
            displaces, is_nominated = pod.spec.preemption_policy != "Never", bool(pod.status.nominated_node_name)
            self._queue.push(QueuedPod(rank, key, pod.metadata.uid, fleet.classes.of(pod), displaces, is_nominated))
        self._new.clear()

    def _wake_groups(self, fleet: Snapshot) -> None:
        """Wakes groups whose first pod fits on a changed node, possibly after preemption."""
        if not self._eased:
            return
        rows = [fleet.rows.row_of[name] for name in self._eased if name in fleet.rows.row_of]
        self._eased.clear()
        for key, group in self._queue.groups.items():
            if self._is_concerned(fleet, group.pods[0], rows):
                self._queue.wake(key)

    def _is_concerned(self, fleet: Snapshot, pod: QueuedPod, rows: Sequence[int]) -> bool:
        judging = fleet.part(FilterChain)
        predicates = judging.active_predicates(pod.pod_class)
        if pod.is_nominated or not _in_bulk(judging, predicates):
            return True
        if any(judging.fits(pod.pod_class, row, predicates) for row in rows):
            return True
        return pod.displaces and any(self._preempting.could_help(fleet, pod.pod_class, row) for row in rows)

    def _placed(self, fleet: Snapshot, group: object, waiting: QueuedPod) -> bool:
        """Returns whether the pod no longer waits."""
        body, pod = self._waiting(waiting), self._stage.world.read_object(waiting.key)
        if body is None or pod is None:
            return True
        judging = fleet.part(FilterChain)
        in_bulk = _in_bulk(judging, judging.active_predicates(waiting.pod_class)) or bool(waiting.pod_class.unmodelled)
        extender = self._extender_of(pod)
        if extender is not None and not extender.holds():
            self._retry(group, _BACKOFF_MS)
            self._queue.parked.add(group)
            return False
        with fleet.part(Nominated).asking(pod):
            row = self._row_for(fleet, pod, waiting.pod_class)
            node = self._nominated(fleet, pod, waiting.pod_class, extender) if row is None else ""
        if row is not None and extender is None:
            bound = with_condition(body, condition("PodScheduled", "True", self._stage.now))
            status = {"conditions": bound, "nominatedNodeName": None}
            patch = {"spec": {"nodeName": fleet.rows.node(row).name}, "status": status}
            self._stage.world.edit(Ref(*waiting.key), patch, MANAGER)
            return True
        if extender is not None:
            if row is not None and extender.bind(pod, fleet.rows.node(row).name):
                return True
            self._retry(group, _BACKOFF_MS if row is not None else _FLUSH_MS)
            if row is not None:
                return False
        if node != pod.status.nominated_node_name:
            self._stage.world.edit(Ref(*waiting.key), {"status": {"nominatedNodeName": node or None}}, MANAGER)
        if not node and in_bulk:
            self._queue.parked.add(group)
            self._tell(fleet, self._queue.unreported(group))
        else:
            self._tell(fleet, [waiting])
        return False

    def _nominated(self, fleet: Snapshot, pod: Pod, pod_class: PodClass, extender: SimulatedExtender | None) -> str:
        """The nominated node after preemption, if it helps and the extender agrees."""
        if extender is None:
            return self._preempting.node_for(fleet, pod, pod_class)
        if extender.awaits_release(pod):
            return pod.status.nominated_node_name
        return self._preempting.node_for(fleet, pod, pod_class, partial(extender.serves_without, pod))

    def _as_it_waits(self, pod: QueuedPod) -> QueuedPod:
        seen: Pod | None = self._stage.world.read_object(pod.key)
        is_nominated = seen is not None and bool(seen.status.nominated_node_name)
        return pod if pod.is_nominated == is_nominated else msgspec.structs.replace(pod, is_nominated=is_nominated)

    def _row_for(self, fleet: Snapshot, pod: Pod, pod_class: PodClass) -> int | None:
        """The nominated node first."""
        judging, extender = fleet.part(FilterChain), self._extender_of(pod)
        name = pod.status.nominated_node_name
        own = fleet.rows.row_of.get(name)
        if own is not None and judging.fits(pod_class, own) and (extender is None or extender.best_node(pod, [name])):
            return own
        mask = judging.mask(pod_class)
        if extender is None:
            return choose(fleet, pod_class, mask)
        best = extender.best_node(pod, _names_of(fleet, mask))
        return fleet.rows.row_of[best] if best else None

    def _extender_of(self, pod: Pod) -> SimulatedExtender | None:
        return self._extender if asks_extender(pod) else None

    def _retry(self, group: object, after_ms: int) -> None:
        """Tries the pods of the group again, whatever happens meanwhile."""
        if (group, after_ms) in self._retried:
            return
        self._retried.add((group, after_ms))

        def wake() -> None:
            self._retried.discard((group, after_ms))
            if group in self._queue.groups:
                self._queue.wake(group)
                self._wake()

        self._stage.engine.after(after_ms, "pods are tried again", wake)

    def _tell(self, fleet: Snapshot, pods: Sequence[QueuedPod]) -> None:
        """Sets the unschedulable condition, once."""
        waiting = [(pod, self._waiting(pod)) for pod in pods]
        untold = [(pod, body) for pod, body in waiting if body is not None and not is_unschedulable(body)]
        why = self._why(fleet, untold[0][0]) if untold else ""
        for _, body in untold:
            entries = {**condition("PodScheduled", "False", self._stage.now, _NOWHERE), "message": why}
            self._stage.world.set_condition(body, entries, MANAGER)

    def _why(self, fleet: Snapshot, waiting: QueuedPod) -> str:
        judging = fleet.part(FilterChain)
        counts = Counter(dict(judging.counted(waiting.pod_class, None).totals))
        pod: Pod | None = self._stage.world.read_object(waiting.key)
        if pod is not None and (extender := self._extender_of(pod)) is not None:
            counts += extender.why_not(pod, _names_of(fleet, judging.mask(waiting.pod_class)))
        reasons = ", ".join(f"{count} {name}" for name, count in counts.items())
        return f"0/{len(fleet.rows.order)} nodes are available: {reasons or 'there are none'}."

    def _waiting(self, pod: QueuedPod) -> Object | None:
        """The same pod, while it is pending."""
        body = self._stage.world.at(pod.key)
        return body if body is not None and body["metadata"]["uid"] == pod.uid and _waits(body) else None


def _in_bulk(judging: FilterChain, predicates: ActivePredicates) -> bool:
    """Whether the other pods of the group fit nowhere either.

    Holds if pods only compete for resources, and nominated pods affect all of them alike.
    """
    return judging.goes_in_bulk(tuple(each for each in predicates if not isinstance(each, Nominated)))


def _names_of(fleet: Snapshot, mask: Mask) -> list[str]:
    """Names of the nodes, in their order."""
    order = fleet.rows.order
    return [fleet.rows.node(row).name for row in order[mask[order]].tolist()]


def _waits(pod: Object) -> bool:
    return not (node_of(pod) or pod["spec"].get("schedulingGates") or is_leaving(pod) or is_finished(pod))


def _differ(before: Object, after: Object) -> bool:
    """Whether pods might fit now that did not before. An annotation tells of freed GPUs."""
    was, is_now = (
        (
            each["spec"],
            each["metadata"].get("labels"),
            (each.get("status") or {}).get("allocatable"),
            annotations_of(each).get(names.PODS_WOKEN_AT),
        )
        for each in (before, after)
    )
    return was != is_now
