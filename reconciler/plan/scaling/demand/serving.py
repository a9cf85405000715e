"""Owner of one provisioner's answer to its demand: which marked nodes are kept, and how many nodes are bought.

It changes the what-if fleet: call it within a fork. A machine on its way of which the cloud has not said yet what it is
and where, is taken for one of those that would be bought.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from reconciler.fleet.packing.pack import pack
from reconciler.fleet.packing.packed import Packed
from reconciler.fleet.packing.shape import Limits, Shape
from reconciler.fleet.placing import Search
from reconciler.fleet.questions import place
from reconciler.fleet.rows import Mask
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.plan.scaling.demand.coming import coming_of
from reconciler.plan.scaling.demand.room import Room, room_for
from reconciler.plan.scaling.ground import Ground
from reconciler.plan.scaling.marks import KEY
from reconciler.plan.usage import is_empty


class Demand(msgspec.Struct, frozen=True):
    """What pods ask of one provisioner."""

    pods: tuple[Pod, ...] = ()  # that it is to serve
    keeps: Mapping[str, int] = {}  # names of marked nodes that some of them fit on, and how many pods
    new_nodes: int = 0  # that are to be bought
    for_new: tuple[Pod, ...] = ()  # whom those are for
    left: int = 0  # pods for which no more nodes may be bought
    room: Room = Room(0)


class Serving:
    """Of one provisioner."""

    def __init__(self, ground: Ground, shapes: list[Shape]) -> None:
        self._ground, self._shapes = ground, shapes
        self._site = ground.site
        self._fleet = ground.site.fleet.what_if

    def serve(self, pods: list[Pod]) -> Demand:
        if not pods:
            return Demand()
        keeps, left = self._on_marked(pods)
        left, vague = self._on_coming(left)
        room = room_for(self._ground)
        limits = Limits(room.nodes + vague, self._site.inputs.budget)
        packed = pack(self._fleet, left, self._shapes, limits) if left else Packed((), (), (), (), 0)
        new = packed.nodes[vague:]
        is_full = len(packed.nodes) == limits.nodes
        short = sum(not each.is_ruled_out for each in packed.unplaced) if is_full else 0
        for_new = tuple(pod for node in new for pod in node.pods)
        return Demand(tuple(pods), keeps, len(new), for_new, short, room)

    def _on_marked(self, pods: list[Pod]) -> tuple[Mapping[str, int], list[Pod]]:
        """As if they were not marked: the last to go is the first to be kept."""
        ground = self._ground
        nodes = (each.node for each in ground.ours)
        empty = ground.order.sorted(node for node in nodes if is_empty(self._site.fleet, node))
        name_of = {f"marked/{ground.wish.name}/{at:06}": node for at, node in enumerate(reversed(empty))}
        rows = [self._instead_of(node, _unmarked(node, name)) for name, node in name_of.items()]
        placed, left = self._placed(pods, rows)
        return Counter(name_of[name].name for name in placed), left

    def _on_coming(self, pods: list[Pod]) -> tuple[list[Pod], int]:
        """What is left then, and how many machines may be anything."""
        coming = coming_of(self._ground, self._shapes)
        there = {f"coming/{node.name}": node for node in coming.instead_of}
        # Of what DaemonSets take there the shape of such a node has been relieved already.
        rows = [
            self._instead_of(there[node.name], node, daemons=False) if node.name in there else self._fleet.bring(node)
            for node in coming.nodes
        ]
        return self._placed(pods, rows)[1], coming.vague

    def _instead_of(self, node: Node, other: Node, daemons: bool = True) -> int:
        """A row that has what is booked on the node."""
        fleet = self._fleet
        before = fleet.rows.row_of[node.name]
        booked = fleet.booked_on(before)
        fleet.take_away(before)
        row = fleet.bring(other)
        for pod_class, count in booked.items():
            if daemons or not pod_class.goes_with_its_node:
                fleet.add(pod_class, row, count)
        return row

    def _placed(self, pods: list[Pod], rows: Sequence[int]) -> tuple[list[str], list[Pod]]:
        """Where they went, and which found no place there."""
        if not rows or not pods:
            return [], pods
        allowed: Mask = np.zeros(self._fleet.rows.capacity, bool)
        allowed[list(rows)] = True
        found = place(self._fleet, pods, Search(allowed=allowed, budget=self._site.inputs.budget))
        return list(found.destinations.values()), [pod for pod in pods if pod.metadata.uid in found.unplaced]


def _unmarked(node: Node, name: str) -> Node:
    taints = tuple(each for each in node.spec.taints if each.key != KEY)
    metadata = msgspec.structs.replace(node.metadata, name=name)
    return msgspec.structs.replace(node, metadata=metadata, spec=msgspec.structs.replace(node.spec, taints=taints))
