"""Fit of waiting pods on new nodes of a pool, headroom of a pool, and the queue of waiting pods."""

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

# --- Which waiting pods fit on a new node of a pool, and why other pods do not fit.
#
# A pool is tried with one simulated node for each launch option. Pods without GPUs are tried only on pools that serve
# such pods: otherwise no GPU node is bought or kept for them.


class PoolShapes(msgspec.Struct, frozen=True):
    """A pool, and the shapes of its new nodes."""

    pool_view: PoolView
    shapes: list[Shape]

    @property
    def name(self) -> str:
        """Name of the provisioner."""
        return self.pool_view.wish.name

    @property
    def pool(self) -> str:
        return self.pool_view.pool.name

    def serves(self, pod: Pod) -> bool:
        """Whether the pool buys nodes for such a pod at all."""
        return self.pool_view.pool.spec.serves_pods_without_gpus or asks_for_gpus(pod)


def fitting(snapshot: Snapshot, pools: Sequence[PoolShapes], pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """By provisioner, the pods that fit on a new node of its pool."""
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
    """Why pods do not fit on new nodes of each pool, cached by pod class. Use within a fork."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._rows: dict[str, list[int]] = {}  # by provisioner
        self._known: dict[tuple[PodClass, str], Why | None] = {}

    def why_not(self, pool: PoolShapes, pod: Pod) -> Why | None:
        """Why the pod fits on no new node of the pool; None if it fits on one."""
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
    """Names of the provisioners whose new nodes could run the pod."""
    candidates = [(each, tried) for each, tried in rows if tried and each.serves(pod)]
    mask = snapshot.part(FilterChain).mask(snapshot.classes.of(pod).anew) if candidates else None
    for each, tried in candidates:
        if mask is not None and mask[tried].any():
            yield each.name


def _new_nodes(pool: PoolShapes) -> Iterator[Node]:
    """One node for each launch option."""
    for shape in pool.shapes:
        for number, each in enumerate(shape.offerings):
            labels = labels_of(shape, each.zone, each.capacity_type)
            yield new_node(f"tried/{pool.name}/{shape.name}/{number}", labels, shape)


def _tried(snapshot: Snapshot, pool: PoolShapes, classes: Iterable[PodClass]) -> Iterator[int]:
    """Rows of the nodes that labels and taints alone do not exclude. Most pods are excluded from most pools."""
    needs = {each.needs.number: each.needs for each in classes}.values()
    for node in _new_nodes(pool):
        if any(selects(each, node) and unborne(node.spec.taints, each.tolerance) is None for each in needs):
            yield snapshot.bring(node)


# --- Headroom: how many more nodes a pool may have, by maxSize and by the limits of the pool.
#
# The rest of a limit on cpu, memory or GPUs is counted in nodes of the largest type that the pool has or declares.

_MILLI = 1_000_000  # billionths


class PoolHeadroom(msgspec.Struct, frozen=True, gc=False):
    """Number of further nodes, and the limit that decides."""

    nodes: int
    limit: CapacityLimit


def room_for(pool_view: PoolView) -> PoolHeadroom:
    """The lowest headroom of all limits; of equal ones the first."""
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
    """Usage in thousandths, by nodes and by machines without a node."""
    has = [node.status.capacity for node in pool_view.nodes] + [claim.status.capacity for claim in pool_view.machines]
    return sum(_milli(each.get(resource, "0")) for each in has)


def _largest(pool_view: PoolView, resource: str) -> int:
    """Most of the resource that one node has, in thousandths; 0 if unknown."""
    pool = pool_view.pool.spec
    found = [_milli(node.status.capacity.get(resource, "0")) for node in pool_view.nodes]
    found += [each.capacity[resource].milli for each in pool.instance_types if resource in each.capacity]
    if resource == names.NVIDIA_GPU:
        found.append(1000 * pool.devices.count)
    return max(found, default=0)


def _milli(written: str) -> int:
    return amount_offered(written) // _MILLI


# --- Queue of waiting pods, with the pools that each pod fits, and what served pods wait for.


class DemandQueue:
    """Waiting pods in order. A served pod leaves the queue. Mutable."""

    def __init__(self, pods: Sequence[Pod], fitting: Mapping[str, Sequence[Pod]]) -> None:
        """`fitting`: by provisioner name, the pods that fit on a new node of its pool."""
        self._left = {pod.metadata.uid: pod for pod in pods}
        self._fitting = fitting
        self.served: dict[str, PodWait] = {}  # by uid

    @property
    def left(self) -> list[Pod]:
        return list(self._left.values())

    def fitting(self, provisioner: str) -> list[Pod]:
        """Waiting pods that fit on a new node of the pool."""
        return [pod for pod in self._fitting.get(provisioner, ()) if pod.metadata.uid in self._left]

    def serve(self, waits: PodWait) -> None:
        """Remove the pod from the queue, with what it waits for."""
        uid = waits.pod.metadata.uid
        if self._left.pop(uid, None) is None:
            raise ValueError(f"Pod/{waits.pod.title} is served already")
        self.served[uid] = waits

    def serve_all(self, waits: Iterable[PodWait]) -> None:
        for each in waits:
            self.serve(each)


# --- Whether a pool may request nodes, apart from capacity and limits.


def why_barred(pool_view: PoolView, freezes: Freezes) -> Bar | None:
    """Why requests of the pool would have no effect; None if the pool may request nodes."""
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
