"""Sums of pods and GPUs on each node, and the node properties that planners read in every cycle."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from reconciler.fleet.amounts import GpuRequests
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod

# --- Owner of the sums per node: requested GPUs and workload pods, and of pending pods; updated incrementally.
#
# Unchanged pod objects are skipped, so a cycle costs what has changed.


class Occupancy:
    """By node name, whether or not the node exists; finished pods are not counted."""

    def __init__(self, pods: Iterable[Pod], gpu_requests: GpuRequests) -> None:
        self._gpu_requests = gpu_requests
        self.gpus: Counter[str] = Counter()  # requested by unfinished pods; callers must not modify either Counter
        self.counting: Counter[str] = Counter()  # workload pods
        self._waiting: dict[int, Pod] = {}
        self._smart: dict[int, Pod] = {}
        self._pods: dict[int, Pod] = {}
        self._touched: set[str] = set()
        self._come(pods)

    @property
    def waiting(self) -> list[Pod]:
        """Pods without a node, by namespace and name."""
        return sorted(self._waiting.values(), key=lambda each: (each.metadata.namespace, each.name))

    @property
    def smart(self) -> list[Pod]:
        """Smart pods, including finished ones, by namespace and name."""
        return sorted(self._smart.values(), key=lambda each: (each.metadata.namespace, each.name))

    @property
    def notified_pods(self) -> list[Pod]:
        """Unfinished bound pods with an eviction notice (evict-at), by namespace and name."""
        return sorted(self._pods.values(), key=lambda each: (each.metadata.namespace, each.name))

    def take_touched(self) -> set[str]:
        """Names of nodes with changes since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def advance(self, gone: Iterable[Pod], came: Iterable[Pod], gpu_requests: GpuRequests) -> None:
        """Applies removed and added pods. Pods with new requests are in both."""
        self._go(gone)
        self._gpu_requests = gpu_requests
        self._come(came)

    def _come(self, pods: Iterable[Pod]) -> None:
        asked_by: dict[int, int] = {}  # by the identity of the containers, which equal pods share
        for pod in pods:
            if names.COMPONENT in pod.metadata.labels:
                self._smart[id(pod)] = pod
            if pod.is_finished:
                continue
            node = pod.spec.node_name
            if not node:
                self._waiting[id(pod)] = pod
                continue
            self._touched.add(node)
            if pod.metadata.annotations.evict_at:
                self._pods[id(pod)] = pod
            spec = pod.spec
            if spec.init_containers or pod.metadata.annotations.claim:
                gpus = self._gpu_requests.of(pod)
            elif (known := asked_by.get(id(spec.containers))) is not None:
                gpus = known
            else:
                gpus = asked_by[id(spec.containers)] = self._gpu_requests.of(pod)
            if gpus:
                self.gpus[node] += gpus
            if not pod.stays_with_its_node:
                self.counting[node] += 1

    def _go(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if names.COMPONENT in pod.metadata.labels:
                del self._smart[id(pod)]
            if pod.is_finished:
                continue
            node = pod.spec.node_name
            if not node:
                del self._waiting[id(pod)]
                continue
            self._touched.add(node)
            if pod.metadata.annotations.evict_at:
                del self._pods[id(pod)]
            if gpus := self._gpu_requests.of(pod):
                self.gpus[node] -= gpus
            if not pod.stays_with_its_node:
                self.counting[node] -= 1


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
