"""Offers: node shapes in the zones where they are available, cheapest first, and virtual nodes for equal offers."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.amounts import counted
from reconciler.fleet.binpack.inputs import PendingPods
from reconciler.fleet.pod_classes import Classes
from reconciler.fleet.rows import Counts, Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeStatus, NodeTaint
from reconciler.model.cluster.pod import Amounts

# --- A shape: a kind of node that could be launched, with properties, zones and prices.


class Offering(msgspec.Struct, frozen=True, gc=False):
    """A zone and capacity type in which a shape is available, and its price."""

    zone: str  # empty if the cloud has no zones
    capacity_type: str  # spot, on-demand, reserved; empty if there is only one
    micro_dollars_per_hour: int
    available: bool = True


class Shape(msgspec.Struct, frozen=True, gc=False):
    """A kind of node. `labels` are common to all its nodes; zone and capacity type come from the offering."""

    name: str
    labels: dict[str, str]
    taints: tuple[NodeTaint, ...]
    allocatable: Amounts  # available to pods, after DaemonSets
    offerings: tuple[Offering, ...]
    most_nodes: int | None = None  # launch limit; None: unlimited


class BinpackLimits(msgspec.Struct, frozen=True, gc=False):
    """Limits of packing."""

    nodes: int | None = None  # maximum number of new nodes of all shapes
    steps: int | None = None  # maximum work; checking up to a thousand classes or offers at once is one step


_AS_MANY_AS_WANTED = 2**62
# Micro-dollars per hour. The highest price that is compared exactly: 2,048 nodes at this price fit into 64 bits,
# together with the fractions that the searches count in. More expensive offers are ordered last, and capped in sums.
_DEAREST = 2**37
Indices = NDArray[np.intp]


class OfferMarket:
    """Offers, numbered by price; `look` is the virtual node of each offer."""

    def __init__(self, shapes: Sequence[Shape], classes: Classes, nodes: int | None) -> None:
        self.shapes = sorted(shapes, key=lambda each: each.name)
        _check_distinct(self.shapes)
        listed = [
            (number, offering)
            for number, shape in enumerate(self.shapes)
            for offering in (shape.offerings if shape.most_nodes != 0 else ())
            if offering.available
        ]
        listed.sort(key=lambda each: (each[1].micro_dollars_per_hour, each[0], each[1].zone, each[1].capacity_type))
        self.offerings: list[Offering] = [offering for _, offering in listed]
        prices = [min(each.micro_dollars_per_hour, _DEAREST) for each in self.offerings]
        self.price: Counts = np.array(prices, np.int64)
        self.shape: Indices = np.array([number for number, _ in listed], np.intp)
        self.look: Indices = np.zeros(len(listed), np.intp)
        self.amounts = [
            {classes.column(name): amount for name, amount in counted(shape.allocatable).items()}
            for shape in self.shapes
        ]
        self.room: Counts = np.zeros((0, len(listed)), np.int64)  # of each requested resource, in each offer
        self.left = [_AS_MANY_AS_WANTED if each.most_nodes is None else each.most_nodes for each in self.shapes]
        self._is_open = [True] * len(self.shapes)
        self.nodes_left = _AS_MANY_AS_WANTED if nodes is None else nodes
        self.open: Mask = np.ones(len(listed), bool)
        self.version = 0  # changes when other offers become available

    def measure(self, columns: list[int]) -> None:
        """Loads the amounts of the resources in `columns`."""
        by_shape = np.array([[has.get(column, 0) for has in self.amounts] for column in columns], np.int64)
        self.room = by_shape.reshape(len(columns), len(self.shapes))[:, self.shape]

    def buyable(self, offer: int) -> int:
        """How many nodes of an offer can still be launched."""
        return min(self.left[int(self.shape[offer])], self.nodes_left)

    def take(self, offer: int, count: int) -> None:
        """Launches nodes of an offer; a negative count undoes launches."""
        shape = int(self.shape[offer])
        self.left[shape] -= count
        self.nodes_left -= count
        if (self.left[shape] > 0) != self._is_open[shape]:
            self._is_open[shape] = self.left[shape] > 0
            self.open[self.shape == shape] = self._is_open[shape]
            self.version += 1

    def holding(self, used: Counts) -> Mask:
        """Offers with enough room."""
        mask = self.open.copy()
        for amount, room in zip(used.tolist(), self.room, strict=True):
            if amount:
                mask &= room >= amount
        return mask


def _check_distinct(shapes: Sequence[Shape]) -> None:
    for one, other in pairwise(shapes):
        if one.name == other.name:
            raise ValueError(f"two shapes are named {one.name}: shape names must be unique")


# --- Virtual nodes: offers with the same labels and taints, as far as any pod depends on them, share one virtual node.

_VirtualNodeKey = tuple[tuple[tuple[str, str], ...], tuple[NodeTaint, ...]]


def look_at(market: OfferMarket, fleet: Snapshot, waiting: list[PendingPods]) -> list[Node]:
    """A virtual node for each group of equal offers; records each offer's virtual node in the market."""
    requested = _selected_label_keys(fleet, waiting)
    numbers: dict[_VirtualNodeKey, int] = {}
    seen = [numbers.setdefault(_virtual_node_key(shape, requested), len(numbers)) for shape in market.shapes]
    by_zone = requested is None or names.ZONE in requested
    by_capacity_type = requested is None or names.CAPACITY_TYPE in requested
    found: dict[tuple[int, str, str], int] = {}
    first: list[Shape] = []
    for offer, (number, offering) in enumerate(zip(market.shape.tolist(), market.offerings, strict=True)):
        key = seen[number], offering.zone if by_zone else "", offering.capacity_type if by_capacity_type else ""
        look = market.look[offer] = found.setdefault(key, len(found))
        if look == len(first):
            first.append(market.shapes[number])
    _leave_out_dearer(market)
    return [
        new_node(f"new/{look}", labels_of(first[look], zone, capacity_type), first[look])
        for (_, zone, capacity_type), look in found.items()
    ]


def _virtual_node_key(shape: Shape, requested: set[str] | None) -> _VirtualNodeKey:
    """The properties of a shape that pods can distinguish, in any zone."""
    labels = ((key, value) for key, value in shape.labels.items() if requested is None or key in requested)
    return tuple(sorted(labels)), shape.taints


def labels_of(shape: Shape, zone: str, capacity_type: str) -> dict[str, str]:
    """The labels of such a node, except its name."""
    result = dict(shape.labels)
    if zone:
        result[names.ZONE] = zone
    if capacity_type:
        result[names.CAPACITY_TYPE] = capacity_type
    return result


def new_node(name: str, labels: dict[str, str], shape: Shape) -> Node:
    """A node as it would be launched. Its name has a slash, so that no node of a cluster has it."""
    allocatable = NodeStatus(allocatable=shape.allocatable)
    return Node(Metadata(name, labels=labels | {names.HOSTNAME: name}), NodeSpec(taints=shape.taints), allocatable)


def _selected_label_keys(fleet: Snapshot, waiting: list[PendingPods]) -> set[str] | None:
    """Label keys that pods depend on; None if any key may matter."""
    counting = fleet.part(Counting)
    result: set[str] = set()
    for needs in {each.pod_class.needs.number: each.pod_class.needs for each in waiting}.values():
        result |= needs.selector.keys()
        for term in needs.terms.node_selector_terms if needs.terms is not None else ():
            result |= {each.key for each in term.match_expressions}
    # Volumes and devices may restrict nodes by any label.
    if any(each.pod_class.pod.spec.volumes or each.pod_class.pod.spec.resource_claims for each in waiting):
        return None
    for terms in {id(each.terms): each.terms for each in waiting}.values():
        result |= {term.key for term in terms.near + terms.apart} | {rule.key for rule in terms.spread}
    if not counting.is_idle:
        for pod_class in {each.pod_class.label_class.number: each.pod_class for each in waiting}.values():
            result |= {count.key for count in counting.repelling(pod_class)}
    return result


def _leave_out_dearer(market: OfferMarket) -> None:
    """Of one shape and one virtual node, only the cheapest offer is needed."""
    _, first = np.unique(market.look * len(market.shapes) + market.shape, return_index=True)
    keep = np.sort(first)
    market.offerings = [market.offerings[offer] for offer in keep.tolist()]
    market.price, market.shape, market.look = market.price[keep], market.shape[keep], market.look[keep]
    market.open = market.open[keep]
