"""Offers as pods see them: all that have the same labels and taints, as far as any pod asks, look the same."""

import numpy as np

from reconciler.fleet.binpack.offers import OfferMarket
from reconciler.fleet.binpack.pending_pods import PendingPods
from reconciler.fleet.binpack.shape import Shape
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeStatus, NodeTaint

_VirtualNodeKey = tuple[tuple[tuple[str, str], ...], tuple[NodeTaint, ...]]


def look_at(market: OfferMarket, fleet: Snapshot, waiting: list[PendingPods]) -> list[Node]:
    """An imagined node for each look; the market is told which offer has which."""
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
    """What pods see of a shape, wherever it is bought."""
    labels = ((key, value) for key, value in shape.labels.items() if requested is None or key in requested)
    return tuple(sorted(labels)), shape.taints


def labels_of(shape: Shape, zone: str, capacity_type: str) -> dict[str, str]:
    """The labels of such a node, but for its name."""
    result = dict(shape.labels)
    if zone:
        result[names.ZONE] = zone
    if capacity_type:
        result[names.CAPACITY_TYPE] = capacity_type
    return result


def new_node(name: str, labels: dict[str, str], shape: Shape) -> Node:
    """A node as it would come up; no node of a cluster has a name with a slash."""
    allocatable = NodeStatus(allocatable=shape.allocatable)
    return Node(Metadata(name, labels=labels | {names.HOSTNAME: name}), NodeSpec(taints=shape.taints), allocatable)


def _selected_label_keys(fleet: Snapshot, waiting: list[PendingPods]) -> set[str] | None:
    """Labels of nodes that somebody asks about; None where that can be any."""
    counting = fleet.part(Counting)
    result: set[str] = set()
    for needs in {each.pod_class.needs.number: each.pod_class.needs for each in waiting}.values():
        result |= needs.selector.keys()
        for term in needs.terms.node_selector_terms if needs.terms is not None else ():
            result |= {each.key for each in term.match_expressions}
    # Where a volume or a device is, it says itself: by any label.
    if any(each.pod_class.pod.spec.volumes or each.pod_class.pod.spec.resource_claims for each in waiting):
        return None
    for terms in {id(each.terms): each.terms for each in waiting}.values():
        result |= {term.key for term in terms.near + terms.apart} | {rule.key for rule in terms.spread}
    if not counting.is_idle:
        for pod_class in {each.pod_class.label_class.number: each.pod_class for each in waiting}.values():
            result |= {count.key for count in counting.repelling(pod_class)}
    return result


def _leave_out_dearer(market: OfferMarket) -> None:
    """Of one shape and one look only the cheapest offer is ever wanted."""
    _, first = np.unique(market.look * len(market.shapes) + market.shape, return_index=True)
    keep = np.sort(first)
    market.offerings = [market.offerings[offer] for offer in keep.tolist()]
    market.price, market.shape, market.look = market.price[keep], market.shape[keep], market.look[keep]
    market.open = market.open[keep]
