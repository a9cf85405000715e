"""Occupancy of each node in sums, and the facts of a node that planners read in every cycle."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from reconciler.fleet.amounts import GpuRequests
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod

# --- Owner of who is on each node, in sums: GPUs asked for, pods that count, and who waits; it follows what is seen.
#
# A pod that is the same object as before is not looked at again: a cycle costs what has changed.


class Occupancy:
    """By the names of nodes, whether these are there or not; finished pods are nowhere."""

    def __init__(self, pods: Iterable[Pod], gpu_requests: GpuRequests) -> None:
        self._gpu_requests = gpu_requests
        self.gpus: Counter[str] = Counter()  # that unfinished pods ask for. Neither is to be changed
        self.counting: Counter[str] = Counter()  # pods that count
        self._waiting: dict[int, Pod] = {}
        self._smart: dict[int, Pod] = {}
        self._pods: dict[int, Pod] = {}
        self._touched: set[str] = set()
        self._come(pods)

    @property
    def waiting(self) -> list[Pod]:
        """Pods that are bound to no node, by namespace and name."""
        return sorted(self._waiting.values(), key=lambda each: (each.metadata.namespace, each.name))

    @property
    def smart(self) -> list[Pod]:
        """Smart pods, finished ones too, by namespace and name."""
        return sorted(self._smart.values(), key=lambda each: (each.metadata.namespace, each.name))

    @property
    def notified_pods(self) -> list[Pod]:
        """Unfinished pods on nodes that were told when they are evicted, by namespace and name."""
        return sorted(self._pods.values(), key=lambda each: (each.metadata.namespace, each.name))

    def take_touched(self) -> set[str]:
        """Names of nodes on which something changed since this was last asked."""
        touched, self._touched = self._touched, set()
        return touched

    def advance(self, gone: Iterable[Pod], came: Iterable[Pod], gpu_requests: GpuRequests) -> None:
        """To the pods as they were seen next: those that are gone, and that came. Pods that ask for other amounts now
        are among both."""
        self._go(gone)
        self._gpu_requests = gpu_requests
        self._come(came)

    def _come(self, pods: Iterable[Pod]) -> None:
        asked_by: dict[int, int] = {}  # by the identity of the containers, which pods that are alike share
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


# --- What planners go by of each node in every cycle, read once for as long as the node is the same object.

_DRAINED = frozenset({names.DRAINING, names.DRAIN_CANDIDATE})


class NodeFacts(msgspec.Struct, frozen=True, gc=False):
    """Of one node."""

    node: Node
    name: str
    pool: str
    instance_type: str
    capacity_type: str
    gpus: int
    is_ready: bool
    is_leaving: bool
    is_being_removed: bool  # bears a taint by which somebody takes it away
    provisioner: str  # that it is labelled with
    is_drained: bool = False  # bears a taint of the planner that drains, the soft one of a candidate included
    is_closed: bool = False  # bears the taint with which it came
    is_unfit: bool = False  # not ready, or its driver is about to be upgraded: nothing should be moved there


def facts_of(node: Node) -> NodeFacts:
    """Read off the node."""
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
