"""In-flight capacity: machines without a node, new nodes of smart pods, and the gated pods that they are for."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from reconciler.fleet.binpack.offers import Shape, new_node
from reconciler.fleet.questions import fits
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.observed import comes_with_each_node
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.offerings import LaunchOption, labels_of
from reconciler.plan.capacity.requests import Requested, is_opening, is_usable, startup_taints
from reconciler.plan.nodes.ownership import is_initializing, untouchable
from reconciler.plan.scaling.pool_view import PoolView, ScalingContext


class Coming(msgspec.Struct, frozen=True):
    """In-flight nodes as pods will find them."""

    nodes: tuple[Node, ...] = ()  # nodes in their final state
    instead_of: tuple[Node, ...] = ()  # observed nodes that they replace
    vague: int = 0  # number of machines whose type is unknown


def coming_of(pool_view: PoolView, shapes: list[Shape], snapshot: Snapshot) -> Coming:
    """In-flight nodes of one pool, with the shape of their instance type. Nodes that are open for pods already are in
    the what-if fleet by another name.
    """
    by_name = {each.name: each for each in shapes}
    nodes, instead_of, vague = [], [], 0
    # Machines of smart pods are counted with their smart pods.
    used = pool_view.context.draft.requests.used_claims_of(pool_view.pool.name)
    for claim in pool_view.arriving:
        if claim.name in used:
            continue
        shape = by_name.get(claim.metadata.labels.get(names.INSTANCE_TYPE, ""))
        if shape is None or not _is_placed(claim, shape):
            vague += 1
        else:
            nodes.append(as_it_will_be(claim.name, claim.metadata.labels, shape))
    for node in _initializing(pool_view):
        if not snapshot.rows.alive[snapshot.rows.row_of[node.name]]:
            continue
        shape = by_name.get(node.instance_type)
        if shape is not None and is_initializing(node, pool_view.claim_of(node), pool_view.context.now):
            nodes.append(as_it_will_be(node.name, node.metadata.labels, shape))
            instead_of.append(node)
    return Coming(tuple(nodes), tuple(instead_of), vague)


def _initializing(pool_view: PoolView) -> list[Node]:
    """Nodes that nobody removes and whose NodeClaim is not Initialized, by name."""
    claims = pool_view.context.fleet.claims_initializing(pool_view.pool.name)
    there = {each.status.node_name for each in claims}
    return [each.node for each in pool_view.facts if each.name in there and pool_view.stays(each.name)] if there else []


def _is_placed(claim: NodeClaim, shape: Shape) -> bool:
    zones = {each.zone for each in shape.offerings}
    return zones == {""} or names.ZONE in claim.metadata.labels


def as_it_will_be(name: str, labels: dict[str, str], shape: Shape) -> Node:
    return new_node(f"coming/{name}", shape.labels | labels, shape)


# --- New nodes of smart pods, in their next state: without the smart pod, and open for all pods.
#
# Changes the what-if fleet: use within a fork. This plan deletes the smart pod of a usable node and removes the taint
# gpu.scheduling/arriving, so that waiting pods learn about the node at once.

_PREFIX = "arrived/"


class Arrived:
    """New nodes that replace observed nodes in the fleet. Mutable."""

    def __init__(self, context: ScalingContext, snapshot: Snapshot) -> None:
        self._context, self._snapshot = context, snapshot
        for pod in context.draft.requests.smart_pods:
            row = snapshot.rows.row_of.get(pod.node)
            if row is not None and not pod.is_finished:
                snapshot.remove(snapshot.classes.of(pod), row)

    def open(self, pool_view: PoolView) -> None:
        """Remove reconciler's startup taint from usable nodes of a pool."""
        closed = pool_view.totals.closed
        passing = startup_taints(self._context.inputs.observed, pool_view.pool.name) if closed else frozenset()
        for node in (each.node for each in closed):
            if self._name_of(node) == node.name and is_opening(node, passing):
                instead_of(self._snapshot, node, _opened(node))

    def unfit(self, pool_view: PoolView, waiting: Mapping[str, Pod]) -> list[str]:
        """Smart pods whose node fits none of the waiting pods that it was bought for."""
        lines = []
        passing = startup_taints(self._context.inputs.observed, pool_view.pool.name)
        for each in self._context.draft.requests.of(pool_view.pool.name):
            pods = [waiting[uid] for uid in each.request.pods if uid in waiting]
            node = each.node
            if node is None or not pods or untouchable(node) is not None or not is_usable(node, passing):
                continue
            if self._takes_none(node, pods):
                lines.append(each.name)
        return lines

    def _takes_none(self, node: Node, pods: Sequence[Pod]) -> bool:
        """Whether the node would fit none of the pods without the other pods on the node: that other pods took the room
        says nothing about the machine type.
        """
        place, classes = self._name_of(node), self._snapshot.classes
        row = self._snapshot.rows.row_of[place]
        there = self._context.fleet.pods_on(node.name)
        stays = Counter(classes.of(each) for each in there if comes_with_each_node(each, self._context.daemon_sets))
        with self._snapshot.fork():
            for pod_class, count in [*self._snapshot.booked_on(row).items()]:
                if others := count - min(count, stays[pod_class]):
                    self._snapshot.remove(pod_class, row, others)
            return all(fits(self._snapshot, pod, place) for pod in pods)  # `fits` returns obstacles

    def _name_of(self, node: Node) -> str:
        name = _PREFIX + node.name
        return name if name in self._snapshot.rows.row_of else node.name


def real_name(name: str) -> str:
    """Name of the observed node for a simulated name."""
    return name.removeprefix(_PREFIX)


def instead_of(snapshot: Snapshot, node: Node, other: Node, daemons: bool = True) -> int:
    """Replace a node in the fleet by another with the same requests. Returns the row."""
    before = snapshot.rows.row_of[node.name]
    booked = snapshot.booked_on(before)
    snapshot.take_away(before)
    row = snapshot.bring(other)
    for pod_class, count in booked.items():
        if daemons or not pod_class.goes_with_its_node:
            snapshot.add(pod_class, row, count)
    return row


def without(node: Node, key: str, name: str) -> Node:
    """The node without a taint, with another name."""
    taints = tuple(each for each in node.spec.taints if each.key != key)
    metadata = msgspec.structs.replace(node.metadata, name=name)
    return msgspec.structs.replace(node, metadata=metadata, spec=msgspec.structs.replace(node.spec, taints=taints))


def _opened(node: Node) -> Node:
    return without(node, names.ARRIVING, _PREFIX + node.name)


# --- Pods that smart pods were created for, on the requested machines. Other pods may use the rest of these machines.
#
# Changes the what-if fleet: call within a fork.


class OnTheirWay(msgspec.Struct, frozen=True):
    """In-flight machines of smart pods."""

    rows: dict[int, str]  # rows of the machines, with their smart pods
    used: frozenset[str]  # smart pods with a pod that still waits
    pods: tuple[Pod, ...]  # pods that the machines are for
    covered: dict[str, str]  # uids of these pods, with the smart pod that each waits for


def on_their_way(pool_view: PoolView, snapshot: Snapshot, shapes: Sequence[Shape], pods: Sequence[Pod]) -> OnTheirWay:
    """`pods`: waiting pods of this pool."""
    by_name = {each.name: each for each in shapes}
    waiting = {pod.metadata.uid: pod for pod in pods}
    rows: dict[int, str] = {}
    used: set[str] = set()
    covered: dict[str, str] = {}
    for each in pool_view.context.draft.requests.of(pool_view.pool.name):
        shape = by_name.get(each.request.instance_type)
        if shape is None or not each.awaits_machine:
            continue
        row = snapshot.bring(as_it_will_be(f"asked/{each.name}", _labels(each), shape))
        rows[row] = each.name
        for uid in each.request.pods:
            if uid in waiting and uid not in covered:
                covered[uid] = each.name
                used.add(each.name)
                snapshot.add(snapshot.classes.of(waiting[uid]).anew, row)
    return OnTheirWay(rows, frozenset(used), tuple(waiting[uid] for uid in covered), covered)


def _labels(each: Requested) -> dict[str, str]:
    if each.claim is not None:
        return each.claim.metadata.labels
    request = each.request
    return dict(labels_of(LaunchOption(request.instance_type, request.capacity_type, request.zone)))
