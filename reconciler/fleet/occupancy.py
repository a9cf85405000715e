"""The observed pods by node, with sums per node; and the node properties that planners read in every cycle.

Without numpy, which is slow to import.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from reconciler.fleet.amounts import GpuRequests, claim_of, read_gpu_requests
from reconciler.fleet.pod_classes import Classes, PodClass, PodProfile
from reconciler.fleet.snapshot.diff import SnapshotDiff
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

FINISHED = frozenset({"Succeeded", "Failed"})


class NodePods:
    """The pods of one node. Only modified while the index is built: a change of the node's pods makes a new object."""

    __slots__ = ("_counts", "_sorted", "booked", "finished", "profiles")

    def __init__(self, booked: list[Pod], profiles: list[PodProfile], finished: list[Pod]) -> None:
        self.booked = booked  # unfinished pods, in no order
        self.profiles = profiles  # of each booked pod
        self.finished = finished
        self._sorted: tuple[Pod, ...] | None = None
        self._counts: dict[PodProfile, int] | None = None

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The unfinished pods, by namespace and name."""
        if self._sorted is None:
            self._sorted = tuple(sorted(self.booked, key=_name))
        return self._sorted

    @property
    def all(self) -> Sequence[Pod]:
        """The pods, including finished ones, by namespace and name."""
        return sorted((*self.booked, *self.finished), key=_name) if self.finished else self.pods

    @property
    def counts(self) -> Mapping[PodProfile, int]:
        """The number of unfinished pods by profile. What holds for equal pods need not be computed for each."""
        if self._counts is None:
            self._counts = dict(Counter(self.profiles))
        return self._counts


NO_PODS = NodePods([], [], [])


class BookingChange(msgspec.Struct, frozen=True):
    """Unfinished bound pods that were removed or added, as the name of their node and their class."""

    gone: list[tuple[str, PodClass]]
    came: list[tuple[str, PodClass]]
    nodes: list[str]  # names of all nodes whose pods changed


# --- Owner of the observed pods by node, and of their classes; updated incrementally.
#
# Unchanged pod objects are skipped, so a cycle costs what has changed. The snapshot books the same pods on its rows.

_FEW_CLASSES, _TIMES = 1_000, 3  # with so many more classes than at first, most are of removed pods


class Occupancy:
    """By node name, whether or not the node exists; finished pods are not counted."""

    def __init__(self, observed: Observed) -> None:
        self._policies = observed.policies
        self.classes = Classes(read_gpu_requests(observed.policies))
        self.classes.expect(len(observed.pods))
        self.classes.read_resources(sorted(observed.nodes, key=lambda each: each.name))
        self.by_node: dict[str, NodePods] = {}
        self.gpus: Counter[str] = Counter()  # requested by unfinished pods; callers must not modify either Counter
        self.counting: Counter[str] = Counter()  # workload pods
        self._waiting: dict[int, Pod] = {}  # each of these by object identity
        self._nominated: dict[int, Pod] = {}
        self._smart: dict[int, Pod] = {}
        self._notified: dict[int, Pod] = {}
        self._touched: set[str] = set()
        self._fill(observed.pods)
        self._most_classes = _FEW_CLASSES + _TIMES * len(self.classes.all)

    @property
    def gpu_requests(self) -> GpuRequests:
        """The number of GPUs that each pod requests."""
        return self.classes.asked_gpus

    @property
    def waiting(self) -> list[Pod]:
        """Pods without a node, by namespace and name."""
        return sorted(self._waiting.values(), key=_name)

    @property
    def nominated(self) -> list[Pod]:
        """Pods without a node that have a nominated node, by namespace and name."""
        return sorted(self._nominated.values(), key=_name)

    @property
    def smart(self) -> list[Pod]:
        """Smart pods, including finished ones, by namespace and name."""
        return sorted(self._smart.values(), key=_name)

    @property
    def notified_pods(self) -> list[Pod]:
        """Unfinished bound pods with an eviction notice (evict-at), by namespace and name."""
        return sorted(self._notified.values(), key=_name)

    @property
    def is_crowded(self) -> bool:
        """Whether the index should be rebuilt, because there are far more classes than at first."""
        return len(self.classes.all) > self._most_classes

    def on(self, node: str) -> NodePods:
        """The pods of a node."""
        return self.by_node.get(node, NO_PODS)

    def take_touched(self) -> set[str]:
        """Names of nodes with changes since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def advance(self, observed: Observed, change: SnapshotDiff) -> BookingChange:
        """Applies removed and added pods, and new counts of GpuClaims. Pods are not read from `observed`."""
        self.classes.expect(len(observed.pods))
        gone, came, gpu_requests = list(change.gone_pods), list(change.came_pods), self.gpu_requests
        if observed.policies is not self._policies:
            self._policies, gpu_requests = observed.policies, read_gpu_requests(observed.policies)
            reclaimed = self._reclaimed(gpu_requests, set(map(id, gone)))
            gone, came = gone + reclaimed, came + reclaimed
        left: defaultdict[str, set[int]] = defaultdict(set)
        booking_change = BookingChange([], [], [])
        for pod in gone:
            self._list(pod, _forget)
            if pod.node:
                left[pod.node].add(id(pod))
                if pod.status.phase not in FINISHED:
                    booking_change.gone.append((pod.node, self.classes.of(pod)))
                    self.classes.forget(pod)
        self.classes.asked_gpus = gpu_requests
        joined = defaultdict[str, list[Pod]](list)
        for pod in came:
            self._list(pod, _remember)
            if pod.node:
                joined[pod.node].append(pod)
        for name in sorted(left.keys() | joined.keys()):
            self._change(name, left[name], joined[name], booking_change)
        return booking_change

    def classes_in_use(self) -> set[PodClass]:
        """The classes of all unfinished pods."""
        booked = {profile.pod_class for each in self.by_node.values() for profile in each.counts}
        return booked | {self.classes.of(pod) for pod in self._waiting.values()}

    def _fill(self, pods: Iterable[Pod]) -> None:
        by_node, book = self.by_node, self.classes.book
        for pod in pods:
            metadata, node = pod.metadata, pod.spec.node_name
            is_finished = pod.status.phase in FINISHED
            if not node or metadata.annotations.evict_at or names.COMPONENT in metadata.labels:
                self._list(pod, _remember)
            if node:
                there = by_node.get(node)
                if there is None:
                    there = by_node[node] = NodePods([], [], [])
                if is_finished:
                    there.finished.append(pod)
                else:
                    there.booked.append(pod)
                    there.profiles.append(book(pod))
        for name, there in by_node.items():
            self._count(name, there)

    def _list(self, pod: Pod, keep: Callable[[dict[int, Pod], Pod], None]) -> None:
        """Adds the pod to the lists that the pod belongs to, or removes the pod from these lists."""
        if names.COMPONENT in pod.metadata.labels:
            keep(self._smart, pod)
        if pod.status.phase in FINISHED:
            return
        if not pod.node:
            keep(self._waiting, pod)
            if pod.status.nominated_node_name:
                keep(self._nominated, pod)
        elif pod.metadata.annotations.evict_at:
            keep(self._notified, pod)

    def _change(self, name: str, left: set[int], joined: list[Pod], change: BookingChange) -> None:
        """Replaces the pods of one node."""
        before, book = self.on(name), self.classes.book
        kept = [each for each in zip(before.booked, before.profiles, strict=True) if id(each[0]) not in left]
        came = [(pod, book(pod)) for pod in joined if pod.status.phase not in FINISHED]
        finished = [pod for pod in before.finished if id(pod) not in left]
        finished += [pod for pod in joined if pod.status.phase in FINISHED]
        booked = kept + came
        there = NodePods([pod for pod, _ in booked], [profile for _, profile in booked], finished)
        if booked or finished:
            self.by_node[name] = there
        else:
            self.by_node.pop(name, None)
        self._count(name, there)
        change.came.extend([(name, profile.pod_class) for _, profile in came])
        change.nodes.append(name)

    def _count(self, name: str, there: NodePods) -> None:
        gpus = counting = 0
        for profile, count in there.counts.items():
            gpus += count * self.classes.gpus_of(profile)
            counting += 0 if profile.pod_class.goes_with_its_node else count
        for sums, amount in ((self.gpus, gpus), (self.counting, counting)):
            if amount:
                sums[name] = amount
            else:
                sums.pop(name, None)
        self._touched.add(name)

    def _reclaimed(self, gpu_requests: GpuRequests, gone: set[int]) -> list[Pod]:
        """Unchanged bound pods whose GpuClaims have a new count."""
        differing = gpu_requests.differing(self.classes.asked_gpus)
        if not differing:
            return []
        there = (pod for each in self.by_node.values() for pod in each.booked)
        return [pod for pod in there if claim_of(pod) in differing and id(pod) not in gone]


def _remember(pods: dict[int, Pod], pod: Pod) -> None:
    pods[id(pod)] = pod


def _forget(pods: dict[int, Pod], pod: Pod) -> None:
    del pods[id(pod)]


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


# --- Node properties that planners read in every cycle, computed once per node object.

_DRAINED = frozenset({names.DRAINING, names.DRAIN_CANDIDATE})


class NodeFacts(msgspec.Struct, frozen=True, gc=False):
    """Properties of one node."""

    node: Node
    name: str
    pool: str
    instance_type: str
    capacity_type: str
    gpus: int
    is_ready: bool
    is_leaving: bool
    is_being_removed: bool  # has a removal taint of any component
    provisioner: str  # from the node's label
    is_drained: bool = False  # has a taint of the drain planner, including the soft taint of a candidate
    is_closed: bool = False  # has the startup taint
    is_unfit: bool = False  # not ready, or before a driver upgrade: no pods should be moved there


def facts_of(node: Node) -> NodeFacts:
    """Computed from the node."""
    metadata = node.metadata
    return NodeFacts(
        node=node,
        name=metadata.name,
        pool=node.pool,
        instance_type=node.instance_type,
        capacity_type=node.capacity_type,
        gpus=node.gpus,
        is_ready=node.is_ready,
        is_leaving=metadata.leaving,
        is_being_removed=any(taint.key in names.TAKING for taint in node.spec.taints),
        provisioner=metadata.labels.get(names.PROVISIONER, ""),
        is_drained=any(taint.key in _DRAINED for taint in node.spec.taints),
        is_closed=any(taint.key == names.ARRIVING for taint in node.spec.taints),
        is_unfit=bool(node.driver_upgrade) or not node.is_ready,
    )
