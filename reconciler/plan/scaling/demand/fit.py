"""Whether a pool may have a new node, which waiting pods would fit on it, and the queue of pods that still wait."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.fleet.binpack.offers import Shape, labels_of, new_node
from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.node import selects, unborne
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.capacity import CapacityLimit
from reconciler.model.plan.decision import Obstacle, Ref, order_of
from reconciler.model.quantity import amount_offered
from reconciler.plan.capacity.demand import asks_for_gpus
from reconciler.plan.capacity.refusals import (
    Bar,
    NodePoolAbsent,
    NoFit,
    NotServed,
    PodWait,
    PolicySuspended,
    PoolFrozen,
    PoolObserved,
    Unserved,
    Why,
)
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import observation_of
from reconciler.plan.scaling.pool_view import PoolView

# --- Which waiting pods a new node of a pool could hold, and why it could not hold the others.
#
# A pool is tried with one imagined node for each way to buy. Where a pod asks for no GPU, only pools that serve such
# pods are tried: a GPU node is neither bought nor kept for it otherwise.


class PoolShapes(msgspec.Struct, frozen=True):
    """A pool, and what its new nodes would be."""

    pool_view: PoolView
    shapes: list[Shape]

    @property
    def name(self) -> str:
        """Of the provisioner."""
        return self.pool_view.wish.name

    @property
    def pool(self) -> str:
        return self.pool_view.pool.name

    def serves(self, pod: Pod) -> bool:
        """Whether nodes are bought for such a pod at all."""
        return self.pool_view.pool.spec.serves_pods_without_gpus or asks_for_gpus(pod)


def fitting(snapshot: Snapshot, pools: Sequence[PoolShapes], pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """By provisioner, the pods that a new node of its pool could hold."""
    result: dict[str, list[Pod]] = {each.name: [] for each in pools}
    with snapshot.fork():
        classes = {snapshot.classes.of(pod).anew for pod in pods}
        rows = [(each, list(_tried(snapshot, each, classes))) for each in pools]
        known: dict[PodClass, list[str]] = {}
        for pod in pods:
            pod_class = snapshot.classes.of(pod).anew
            if pod_class not in known:
                known[pod_class] = list(_holding(snapshot, rows, pod))
            for name in known[pod_class]:
                result[name].append(pod)
    return result


class Refusing:
    """Owner of imagined new nodes of each pool, and of why they could not hold pods; within a fork. Asked once for all
    pods of a class."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._rows: dict[str, list[int]] = {}  # by provisioner
        self._known: dict[tuple[PodClass, str], Why | None] = {}

    def why_not(self, pool: PoolShapes, pod: Pod) -> Why | None:
        """Why no new node of the pool could hold the pod; None where one could."""
        key = self._snapshot.classes.of(pod).anew, pool.name
        if key not in self._known:
            serves = pool.serves(pod)
            self._known[key] = self._why_not(pool, key[0]) if serves else NotServed(Unserved.WITHOUT_GPUS)
        return self._known[key]

    def _why_not(self, pool: PoolShapes, pod_class: PodClass) -> Why | None:
        judging = self._snapshot.part(FilterChain)
        rows = self._rows.get(pool.name)
        if rows is None:
            rows = self._rows[pool.name] = [self._snapshot.bring(node) for node in _new_nodes(pool)]
        if not rows:
            return NotServed(Unserved.NO_INSTANCE_TYPE)
        reasons: list[Obstacle] = []
        for row in rows:
            if (reason := judging.first_reason(pod_class, row)) is None:
                return None
            reasons.append(reason)
        return NoFit(min(reasons, key=order_of))


def _holding(snapshot: Snapshot, rows: Iterable[tuple[PoolShapes, list[int]]], pod: Pod) -> Iterator[str]:
    """Names of the provisioners whose new nodes could hold the pod."""
    candidates = [(each, tried) for each, tried in rows if tried and each.serves(pod)]
    mask = snapshot.part(FilterChain).mask(snapshot.classes.of(pod).anew) if candidates else None
    for each, tried in candidates:
        if mask is not None and mask[tried].any():
            yield each.name


def _new_nodes(pool: PoolShapes) -> Iterator[Node]:
    """One for each way in which it could be bought."""
    for shape in pool.shapes:
        for number, each in enumerate(shape.offerings):
            labels = labels_of(shape, each.zone, each.capacity_type)
            yield new_node(f"tried/{pool.name}/{shape.name}/{number}", labels, shape)


def _tried(snapshot: Snapshot, pool: PoolShapes, classes: Iterable[PodClass]) -> Iterator[int]:
    """Rows of the nodes that labels and taints alone do not rule out: most do for most pods."""
    needs = {each.needs.number: each.needs for each in classes}.values()
    for node in _new_nodes(pool):
        if any(selects(each, node) and unborne(node.spec.taints, each.tolerance) is None for each in needs):
            yield snapshot.bring(node)


# --- How many more nodes a pool may have: by the provisioner's largest size, and by the limits of the pool.
#
# What a limit on cpu, memory or GPUs leaves is counted in nodes of the largest sort that the pool has or declares.

_MILLI = 1_000_000  # billionths


class PoolHeadroom(msgspec.Struct, frozen=True, gc=False):
    """So many, and what allows no more."""

    nodes: int
    limit: CapacityLimit


def room_for(pool_view: PoolView) -> PoolHeadroom:
    """The least that any of them leaves: of several, the first."""
    return min(_rooms(pool_view), key=lambda room: room.nodes)


def _rooms(pool_view: PoolView) -> Iterator[PoolHeadroom]:
    there = pool_view.size + len(pool_view.machines) + pool_view.requested_machines
    most = pool_view.wish.spec.max_size
    for resource, amount in sorted(pool_view.pool.spec.limits.items()):
        limit = CapacityLimit("limits", pool_view.pool.name, resource, str(amount))
        if resource == "nodes":
            yield PoolHeadroom(max(0, amount.milli // 1000 - there), limit)
        elif largest := _largest(pool_view, resource):
            yield PoolHeadroom(max(0, (amount.milli - _used(pool_view, resource)) // largest), limit)
    yield PoolHeadroom(max(0, most - there), CapacityLimit("maxSize", pool_view.wish.name, amount=str(most)))


def _used(pool_view: PoolView, resource: str) -> int:
    """In thousandths, by nodes and by machines without one."""
    has = [node.status.capacity for node in pool_view.nodes] + [claim.status.capacity for claim in pool_view.machines]
    return sum(_milli(each.get(resource, "0")) for each in has)


def _largest(pool_view: PoolView, resource: str) -> int:
    """The most that one node has of it, in thousandths; 0 where that is not known."""
    pool = pool_view.pool.spec
    found = [_milli(node.status.capacity.get(resource, "0")) for node in pool_view.nodes]
    found += [each.capacity[resource].milli for each in pool.instance_types if resource in each.capacity]
    if resource == names.NVIDIA_GPU:
        found.append(1000 * pool.devices.count)
    return max(found, default=0)


def _milli(written: str) -> int:
    return amount_offered(written) // _MILLI


# --- Owner of which pods still wait for capacity, which pools each of them fits, and what the others wait for.


class DemandQueue:
    """Pods keep their order. A pod that is served leaves the queue."""

    def __init__(self, pods: Sequence[Pod], fitting: Mapping[str, Sequence[Pod]]) -> None:
        """`fitting`: by the name of a provisioner, the pods that a new node of its pool could hold."""
        self._left = {pod.metadata.uid: pod for pod in pods}
        self._fitting = fitting
        self.served: dict[str, PodWait] = {}  # by uid

    @property
    def left(self) -> list[Pod]:
        return list(self._left.values())

    def fitting(self, provisioner: str) -> list[Pod]:
        """Pods that still wait, and that a new node of the pool could hold."""
        return [pod for pod in self._fitting.get(provisioner, ()) if pod.metadata.uid in self._left]

    def serve(self, waits: PodWait) -> None:
        """Nothing further is done for the pod."""
        uid = waits.pod.metadata.uid
        if self._left.pop(uid, None) is None:
            raise ValueError(f"Pod/{waits.pod.title} is served already")
        self.served[uid] = waits

    def serve_all(self, waits: Iterable[PodWait]) -> None:
        for each in waits:
            self.serve(each)


# --- Whether a pool may be asked for a node at all, apart from stock and limits.


def why_barred(pool_view: PoolView, freezes: Freezes) -> Bar | None:
    """Why nothing that is asked of the pool would come; None where the pool may be asked."""
    context, pool = pool_view.context, pool_view.pool
    if pool.spec.suspend:
        return PolicySuspended(Ref("GpuPool", "", pool.name))
    if pool_view.wish.spec.suspend:
        return PolicySuspended(Ref("NodeProvisioner", "", pool_view.wish.name))
    if freeze := freezes.of_pool(pool.name):
        return PoolFrozen(freeze)
    if context.inputs.observed.why_unread("nodepools.karpenter.sh"):
        return None
    there = (each for each in context.inputs.observed.node_pools if each.name == pool.name)
    if all(each.metadata.deletion_timestamp for each in there):
        return NodePoolAbsent(Ref("NodePool", "", pool.name))
    observation = observation_of(context.inputs, pool.name)
    return PoolObserved(observation) if observation is not None else None
