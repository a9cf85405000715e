"""Nodes of smart pods that have come, as they will be in a moment: without the smart pod, and open to all pods.

It changes the what-if fleet: use it within a fork. A node that can be used is emptied of smart pods and loses the
taint gpu.scheduling/arriving in this very plan, so that whoever waits for it can be told of it at once.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from reconciler.fleet.questions import fits
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.daemon_sets import comes_with_each_node
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.usable import is_opening, is_usable, startup_taints
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.scaling.pool_view import PoolView, ScalingContext

_PREFIX = "arrived/"


class Arrived:
    """Owner of what was put in the place of which node."""

    def __init__(self, context: ScalingContext, snapshot: Snapshot) -> None:
        self._context, self._snapshot = context, snapshot
        for pod in context.draft.requests.smart_pods:
            row = snapshot.rows.row_of.get(pod.node)
            if row is not None and not pod.is_finished:
                snapshot.remove(snapshot.classes.of(pod), row)

    def open(self, pool_view: PoolView) -> None:
        """Takes our startup taint off those nodes of a pool that can be used."""
        closed = pool_view.totals.closed
        passing = startup_taints(self._context.inputs.observed, pool_view.pool.name) if closed else frozenset()
        for node in (each.node for each in closed):
            if self._name_of(node) == node.name and is_opening(node, passing):
                instead_of(self._snapshot, node, _opened(node))

    def unfit(self, pool_view: PoolView, waiting: Mapping[str, Pod]) -> list[str]:
        """Smart pods whose node takes none of those it was bought for, though they wait still."""
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
        """Whether the node would take none of the pods, had no others come to it: that somebody else took the room says
        nothing of machines of its kind."""
        place, classes = self._name_of(node), self._snapshot.classes
        row = self._snapshot.rows.row_of[place]
        there = self._context.fleet.pods_on(node.name)
        stays = Counter(classes.of(each) for each in there if comes_with_each_node(each, self._context.daemon_sets))
        with self._snapshot.fork():
            for pod_class, count in [*self._snapshot.booked_on(row).items()]:
                if others := count - min(count, stays[pod_class]):
                    self._snapshot.remove(pod_class, row, others)
            return all(fits(self._snapshot, pod, place) for pod in pods)  # it tells the reasons why not

    def _name_of(self, node: Node) -> str:
        name = _PREFIX + node.name
        return name if name in self._snapshot.rows.row_of else node.name


def real_name(name: str) -> str:
    """Of a node that may stand there as it will be."""
    return name.removeprefix(_PREFIX)


def instead_of(snapshot: Snapshot, node: Node, other: Node, daemons: bool = True) -> int:
    """A row that has what is booked on the node."""
    before = snapshot.rows.row_of[node.name]
    booked = snapshot.booked_on(before)
    snapshot.take_away(before)
    row = snapshot.bring(other)
    for pod_class, count in booked.items():
        if daemons or not pod_class.goes_with_its_node:
            snapshot.add(pod_class, row, count)
    return row


def without(node: Node, key: str, name: str) -> Node:
    """The same without a taint, by another name."""
    taints = tuple(each for each in node.spec.taints if each.key != key)
    metadata = msgspec.structs.replace(node.metadata, name=name)
    return msgspec.structs.replace(node, metadata=metadata, spec=msgspec.structs.replace(node.spec, taints=taints))


def _opened(node: Node) -> Node:
    return without(node, names.ARRIVING, _PREFIX + node.name)
