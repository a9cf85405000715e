"""Says what packing found: which pod is on which node, in what order they can be bound, and why others are not."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reconciler.fleet.binpack.domains.assignment import Sharing
from reconciler.fleet.binpack.nodes.new_nodes import BinpackNode
from reconciler.fleet.binpack.nodes.pod_groups import Lots
from reconciler.fleet.binpack.offers import OfferMarket
from reconciler.fleet.binpack.pending_pods import PendingPods, in_order
from reconciler.fleet.binpack.refusals import ShapeRefusals
from reconciler.fleet.binpack.result import NewNode, ShapeRefusal, Unplaced
from reconciler.fleet.obstacles import CompanionsUnplaced, NodesExhausted, ShapesExhausted
from reconciler.model.cluster.pod import Pod
from reconciler.model.obstacle import Obstacle


class PackingRound(NamedTuple):
    """What one round comes to; `order` as of Packed."""

    nodes: list[NewNode]
    unplaced: list[Unplaced]
    order: list[tuple[int, int]]


class PackingResultBuilder:
    """Owner of where each pod is, by what tells pods apart for as long as packing lasts."""

    def __init__(self, waiting: list[PendingPods], sharing: Sharing) -> None:
        self._waiting = waiting
        self._sharing = sharing
        self._node_of: dict[int, int] = {}  # id of a pod -> number of its node
        self._pods: list[list[Pod]] = []
        self._why: dict[int, Obstacle] = {}  # id of a pod that is on none -> why

    def place(self, nodes: list[BinpackNode], lots: Lots) -> None:
        """Hands the pods of the lots out to the nodes."""
        handed = [0] * len(lots)
        for number, node in enumerate(nodes):
            pods: list[Pod] = []
            for lot, count in node.content.items():
                start = handed[lot]
                handed[lot] = start + count
                for unit in lots.units[lot][start : start + count]:
                    pods += unit
            self._pods.append(pods)
            self._node_of.update(dict.fromkeys(map(id, pods), number))

    def hold_back(self) -> dict[int, Counter[int]]:
        """Takes pods off that could not be bound since others, that were to be there first, are not.

        By node, how many of which class.
        """
        tied = list(self._tied())
        nodes = [self._node_of.get(id(pod)) for _, pod in tied]
        result: dict[int, Counter[int]] = {}
        if None not in nodes and not self._sharing.asks_hosts:
            return result
        for (at, pod), number, is_kept in zip(tied, nodes, self._sharing.kept(nodes), strict=True):
            if number is not None and not is_kept:
                del self._node_of[id(pod)]
                self._why[id(pod)] = CompanionsUnplaced()
                result.setdefault(number, Counter())[at] += 1
        for number in result:
            self._pods[number] = [pod for pod in self._pods[number] if id(pod) in self._node_of]
        return result

    def refuse(self, pods: Iterable[Pod], why: Obstacle) -> None:
        """Says why pods are on no node."""
        self._why.update(dict.fromkeys(map(id, pods), why))

    def result(self, bought: list[BinpackNode], market: OfferMarket, refusals: ShapeRefusals) -> PackingRound:
        """All of it, as if there had been steps for all."""
        number_of: dict[int, int] = {}
        nodes: list[NewNode] = []
        for number, pods in enumerate(self._pods):
            if pods:
                number_of[number] = len(nodes)
                nodes.append(_new_node(bought[number].offer, market, pods))
        why_else = NodesExhausted() if market.nodes_left <= 0 else ShapesExhausted()
        return PackingRound(nodes, list(self._unplaced(refusals, why_else)), list(self._order(number_of)))

    def _order(self, number_of: dict[int, int]) -> Iterator[tuple[int, int]]:
        """Pods that are tied to places come first, since all others may be anywhere whoever is there."""
        at = {id(pod): index for pods in self._pods for index, pod in enumerate(pods)}
        first = [pod for _, pod in self._tied() if id(pod) in self._node_of]
        yield from ((number_of[self._node_of[id(pod)]], at[id(pod)]) for pod in first)
        tied = set(map(id, first))
        for number, pods in enumerate(self._pods):
            yield from ((number_of[number], index) for index, pod in enumerate(pods) if id(pod) not in tied)

    def _unplaced(self, refusals: ShapeRefusals, why_else: Obstacle) -> Iterator[Unplaced]:
        found = [(pod, each) for each in self._waiting for pod in each.pods if id(pod) not in self._node_of]
        known: dict[int, tuple[ShapeRefusal, ...]] = {}
        for pod, each in sorted(found, key=lambda one: in_order(one[0])):
            if each.number not in known:
                known[each.number] = refusals.of(each)
            refused = known[each.number]
            why = self._why.get(id(pod)) or refusals.main(each, refused) or why_else
            yield Unplaced(pod, why, refused, refusals.are_of_all(refused))

    def _tied(self) -> Iterator[tuple[int, Pod]]:
        """Pods that are tied to places, each with its class, in the order in which they are to be bound."""
        done: dict[int, int] = {}
        for at, _ in self._sharing.order:
            number = done.get(at, 0)
            done[at] = number + 1
            yield at, self._waiting[at].pods[number]


def _new_node(offer: int, market: OfferMarket, pods: list[Pod]) -> NewNode:
    offering = market.offerings[offer]
    return NewNode(
        shape=market.shapes[market.shape[offer]].name,
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        micro_dollars_per_hour=offering.micro_dollars_per_hour,
        pods=tuple(pods),
    )
