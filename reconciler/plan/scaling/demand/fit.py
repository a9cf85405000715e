"""Which waiting pods a new node of a pool could hold, and why it could not hold the others.

A pool is tried with one imagined node for each way to buy. Where a pod asks for no GPU, only pools that serve such pods
are tried: a GPU node is neither bought nor kept for it otherwise.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reconciler.fleet.binpack.shape import Shape
from reconciler.fleet.binpack.virtual_nodes import labels_of, new_node
from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.selection import selects
from reconciler.fleet.filters.taints import unborne
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.obstacle import Obstacle, order_of
from reconciler.plan.capacity.refusals import NoFit, NotServed, Unserved, Why
from reconciler.plan.capacity.waiting import asks_for_gpus
from reconciler.plan.scaling.pool_view import PoolView


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
