"""Owner of one provisioner's answer to its demand: which marked nodes are kept, and how many nodes are bought.

It changes the what-if fleet: call it within a fork. A machine on its way of which the cloud has not said yet what it is
and where, is taken for one of those that would be bought. For pods that Karpenter sees nodes are packed as it would:
the cheapest. Pods behind our gate come after them, and for these the pool's ways to buy are tried in their order.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from reconciler.fleet.packing.looks import labels_of as labels_where
from reconciler.fleet.packing.looks import new_node
from reconciler.fleet.packing.pack import pack
from reconciler.fleet.packing.packed import NewNode, Packed
from reconciler.fleet.packing.shape import Limits, Shape
from reconciler.fleet.placing import Search
from reconciler.fleet.questions import place
from reconciler.fleet.rows import Mask
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.plan.requests.choices import Choice
from reconciler.plan.requests.waiting import is_gated
from reconciler.plan.requests.wanted import Wanted
from reconciler.plan.scaling.demand.arrived import instead_of, without
from reconciler.plan.scaling.demand.asking import OnTheirWay, on_their_way
from reconciler.plan.scaling.demand.coming import coming_of
from reconciler.plan.scaling.demand.room import Room, room_for
from reconciler.plan.scaling.ground import Ground
from reconciler.plan.scaling.marks import KEY
from reconciler.plan.sums.usage import is_empty

MARKED = "marked/"
_NOTHING = Packed((), (), (), (), 0)


def marked_name(node: Node, at: int) -> str:
    """Of a marked node, as if it were not marked. `at`: its place among those that are tried."""
    return f"{MARKED}{at:06}/{node.name}"


class Demand(msgspec.Struct, frozen=True):
    """What pods ask of one provisioner."""

    pods: tuple[Pod, ...] = ()  # that it is to serve
    keeps: Mapping[str, int] = {}  # names of marked nodes that some of them fit on, and how many pods
    wanted: tuple[Wanted, ...] = ()  # nodes that are to be bought
    used: frozenset[str] = frozenset()  # smart pods on their way for which somebody waits
    asked: tuple[Pod, ...] = ()  # those that smart pods were made for
    unmet: tuple[Pod, ...] = ()  # those for whom no way to buy is left, or none yet
    left: int = 0  # pods for which no more nodes may be bought
    room: Room = Room(0)

    @property
    def new_nodes(self) -> int:
        return len(self.wanted)

    @property
    def for_new(self) -> tuple[Pod, ...]:
        """Whom those are for."""
        return tuple(pod for each in self.wanted for pod in each.pods)


class _Bought(msgspec.Struct, frozen=True):
    """What is to be bought for some of the pods."""

    wanted: tuple[Wanted, ...] = ()
    full: int = 0  # pods for which there is no room
    unmet: tuple[Pod, ...] = ()


class Serving:
    """Of one provisioner."""

    def __init__(self, ground: Ground, shapes: list[Shape]) -> None:
        self._ground = ground
        self._shapes = {each.name: each for each in shapes}
        self._site = ground.site
        self._fleet = ground.site.fleet.what_if
        self._budget = ground.site.inputs.budget

    def serve(self, pods: list[Pod]) -> Demand:
        if not pods:
            return Demand()
        keeps, left = self._on_marked(pods)
        way = on_their_way(self._ground, self._fleet, list(self._shapes.values()), left)
        left, used, vague = self._on_coming(way)
        room = room_for(self._ground)
        seen = self._as_karpenter_would([pod for pod in left if not is_gated(pod)], room.nodes, vague)
        left = self._beside(seen, [pod for pod in left if is_gated(pod)])
        gated = self._in_order(left, room.nodes - len(seen.wanted))
        return Demand(
            tuple(pods),
            keeps,
            seen.wanted + gated.wanted,
            way.used | used,
            way.pods,
            gated.unmet,
            seen.full + gated.full,
            room,
        )

    def _on_marked(self, pods: list[Pod]) -> tuple[Mapping[str, int], list[Pod]]:
        """As if they were not marked: the last to go is the first to be kept."""
        ground = self._ground
        nodes = (each.node for each in ground.ours)
        empty = ground.order.sorted(node for node in nodes if is_empty(self._site.fleet, node))
        name_of = {marked_name(node, at): node for at, node in enumerate(reversed(empty))}
        rows = [instead_of(self._fleet, node, without(node, KEY, name)) for name, node in name_of.items()]
        placed, left = self._placed(pods, rows)
        return Counter(name_of[name].name for name in placed), left

    def _on_coming(self, way: OnTheirWay) -> tuple[list[Pod], frozenset[str], int]:
        """What is left then, smart pods whose machines are of use to others too, and machines that may be anything."""
        coming = coming_of(self._ground, list(self._shapes.values()), self._fleet)
        there = {f"coming/{node.name}": node for node in coming.instead_of}
        # Of what DaemonSets take there the shape of such a node has been relieved already.
        rows = [
            instead_of(self._fleet, there[node.name], node, daemons=False)
            if node.name in there
            else self._fleet.bring(node)
            for node in coming.nodes
        ]
        placed, left = self._placed(way.left, [*rows, *way.rows])
        names = {f"coming/asked/{name}": name for name in way.rows.values()}
        return left, frozenset(names[each] for each in placed if each in names), coming.vague

    def _as_karpenter_would(self, pods: list[Pod], most: int, vague: int) -> _Bought:
        """The cheapest nodes, of whatever shapes."""
        limits = Limits(most + vague, self._budget)
        packed = pack(self._fleet, pods, list(self._shapes.values()), limits) if pods else _NOTHING
        wanted = tuple(self._wanted(each, Choice(each.shape), is_seen=True) for each in packed.nodes[vague:])
        return _Bought(wanted, _short_of(packed, limits))

    def _beside(self, bought: _Bought, pods: list[Pod]) -> list[Pod]:
        """Which find no place on nodes that others will get."""
        rows = []
        for number, each in enumerate(bought.wanted if pods else ()):
            name = f"bought/{self._ground.wish.name}/{number:06}"
            row = self._fleet.bring(new_node(name, each.labels, self._shapes[each.choice.instance_type]))
            rows.append(row)
            for pod in each.pods:
                self._fleet.add(self._fleet.classes.of(pod).anew, row)
        return self._placed(pods, rows)[1]

    def _in_order(self, pods: list[Pod], most: int) -> _Bought:
        """By one way to buy after the other, each for those whom those before don't suit."""
        outlook = self._ground.outlook
        waits_until = outlook.again_at
        if outlook.is_exhausted or (waits_until is not None and waits_until > self._site.now):
            return _Bought(unmet=tuple(pods))
        wanted: list[Wanted] = []
        full = 0
        for choice in outlook.left:
            shape = self._shape_of(choice)
            if not pods or shape is None:
                continue
            limits = Limits(most - len(wanted), self._budget)
            packed = pack(self._fleet, pods, [shape], limits)
            full = _short_of(packed, limits)
            wanted += [self._wanted(each, choice) for each in packed.nodes]
            pods = [each.pod for each in packed.unplaced] + list(packed.not_evaluated)
        whole = self._whole_gangs(wanted, pods)
        return _Bought(whole, full)

    def _whole_gangs(self, wanted: list[Wanted], left: list[Pod]) -> tuple[Wanted, ...]:
        """Nothing is bought for a gang of which some would find no place all the same."""
        gangs = self._site.draft.gangs
        broken = gangs.broken_by(left)
        return tuple(each for each in wanted if not broken or any(gangs.of(pod) not in broken for pod in each.pods))

    def _shape_of(self, choice: Choice) -> Shape | None:
        shape = self._shapes.get(choice.instance_type)
        if shape is None:
            return None
        offerings = tuple(
            each
            for each in shape.offerings
            if choice.capacity_type in {"", each.capacity_type} and choice.zone in {"", each.zone}
        )
        return msgspec.structs.replace(shape, offerings=offerings) if offerings else None

    def _wanted(self, node: NewNode, choice: Choice, is_seen: bool = False) -> Wanted:
        shape = self._shapes[node.shape]
        labels = labels_where(shape, node.zone, node.capacity_type)
        return Wanted(choice, labels, shape.allocatable.get("memory", "0"), node.pods, is_seen)

    def _placed(self, pods: list[Pod], rows: Sequence[int]) -> tuple[list[str], list[Pod]]:
        """Where they went, and which found no place there."""
        if not rows or not pods:
            return [], pods
        allowed: Mask = np.zeros(self._fleet.rows.capacity, bool)
        allowed[list(rows)] = True
        found = place(self._fleet, pods, Search(allowed=allowed, budget=self._budget))
        return list(found.destinations.values()), [pod for pod in pods if pod.metadata.uid in found.unplaced]


def _short_of(packed: Packed, limits: Limits) -> int:
    """Pods that would have found a place, had more nodes been allowed."""
    is_full = len(packed.nodes) == limits.nodes
    return sum(not each.is_ruled_out for each in packed.unplaced) if is_full else 0
