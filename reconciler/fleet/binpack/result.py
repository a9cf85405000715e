"""Result of packing: new nodes with their pods, and why other pods have no node."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from reconciler.fleet.binpack.domains.assignment import Sharing
from reconciler.fleet.binpack.inputs import ExistingNodes, PendingPods, in_order
from reconciler.fleet.binpack.nodes.new_nodes import BinpackNode
from reconciler.fleet.binpack.nodes.pod_groups import Lots
from reconciler.fleet.binpack.offers import OfferMarket
from reconciler.fleet.obstacles import (
    CompanionsUnplaced,
    NodesExhausted,
    NoPlaceByTerms,
    NothingOffered,
    NotToBuy,
    NowhereToBeHad,
    ShapesExhausted,
    ShapesTooSmall,
)
from reconciler.fleet.rows import Counts, Mask
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Obstacle, order_of


class NewNode(msgspec.Struct, frozen=True, gc=False):
    """A new node, and its pods."""

    shape: str
    zone: str
    capacity_type: str
    micro_dollars_per_hour: int
    pods: tuple[Pod, ...]


class ShapeRefusal(msgspec.Struct, frozen=True, gc=False):
    """Why a pod cannot be on new nodes of some shapes, regardless of other pods."""

    why: Obstacle
    shapes: tuple[str, ...]


class Unplaced(msgspec.Struct, frozen=True, gc=False):
    """A pod without a node: the obstacle, and shapes that are excluded by themselves."""

    pod: Pod
    why: Obstacle
    refusals: tuple[ShapeRefusal, ...]
    is_ruled_out: bool  # these refusals cover every shape


class Packed(msgspec.Struct, frozen=True, gc=False):
    """Nodes in a stable, arbitrary order; pods without a node by namespace and name.

    `order` names every placed pod once (node, pod of that node): bound in this order, with all nodes present from the
    start, each pod passes every filter of the scheduler at its turn.
    """

    nodes: tuple[NewNode, ...]
    unplaced: tuple[Unplaced, ...]
    not_evaluated: tuple[Pod, ...]  # unknown, since the step limit was reached
    order: tuple[tuple[int, int], ...]
    steps: int

    @property
    def micro_dollars_per_hour(self) -> int:
        return sum(each.micro_dollars_per_hour for each in self.nodes)


# --- Why a pod has no node: excluded shapes, and the most informative obstacle.


class ShapeRefusals:
    """Evaluated per class, within the fork of `standing`; `allowed` has the virtual nodes of each class."""

    def __init__(
        self, market: OfferMarket, existing_nodes: ExistingNodes, allowed: list[Mask], resources: list[str]
    ) -> None:
        self._market = market
        self._existing_nodes = existing_nodes
        self._allowed = allowed
        self._resources = resources
        self._amounts: dict[int, Counts] = {}  # resource -> amount of each shape
        self._said: dict[tuple[object, int], Obstacle] = {}
        self._names: dict[bytes, tuple[str, ...]] = {}
        is_barred = np.array([each.most_nodes == 0 for each in market.shapes], bool)
        is_offered = np.zeros(len(market.shapes), bool)
        is_offered[market.shape] = True
        self._not_for_sale: list[tuple[Obstacle, Mask]] = [
            (NotToBuy(), is_barred),
            (NowhereToBeHad(), ~is_offered & ~is_barred),
        ]

    def of(self, each: PendingPods) -> tuple[ShapeRefusal, ...]:
        """The refusals of such a pod; each excluded shape is named once."""
        found = list(self._not_for_sale)
        left = ~np.logical_or(*[shapes for _, shapes in found])
        for column, amount in each.pod_class.request:
            lacking = left & (self._has(column) < amount)
            if lacking.any():
                found.append((self._lacks(column, amount, lacking), lacking))
                left &= ~lacking
        found += self._ruled_out(each, left)
        return tuple(ShapeRefusal(why, self._named(shapes)) for why, shapes in found if shapes.any())

    def main(self, each: PendingPods, refusals: tuple[ShapeRefusal, ...]) -> Obstacle | None:
        """The most informative obstacle if every shape is excluded: a resource that none has, or the most frequent
        obstacle.
        """
        if not self.are_of_all(refusals):
            return None
        if not refusals:
            return NothingOffered()
        everywhere: Mask = np.ones(len(self._market.shapes), bool)
        for column, amount in each.pod_class.request:
            if (self._has(column) < amount).all():
                return self._lacks(column, amount, everywhere)
        return max(refusals, key=lambda refusal: (len(refusal.shapes), order_of(refusal.why))).why

    def are_of_all(self, refusals: tuple[ShapeRefusal, ...]) -> bool:
        """Whether all shapes are excluded."""
        return sum(len(refusal.shapes) for refusal in refusals) == len(self._market.shapes)

    def _ruled_out(self, each: PendingPods, shapes: Mask) -> list[tuple[Obstacle, Mask]]:
        """Obstacles from labels, taints and existing pods, for shapes without any allowed virtual node."""
        market, allowed = self._market, self._allowed[each.number]
        open_to: Mask = np.zeros(len(market.shapes), bool)
        open_to[market.shape[allowed[market.look]]] = True
        offers = np.flatnonzero((shapes & ~open_to)[market.shape])
        looks = market.look[offers[np.unique(market.shape[offers], return_index=True)[1]]]
        found: dict[Obstacle, Mask] = {}
        for look in np.unique(looks).tolist():
            said = found.setdefault(self._say(each, look), np.zeros(len(shapes), bool))
            said[market.shape[market.look == look]] = True
        left = shapes & ~open_to
        result = []
        for why, said in sorted(found.items(), key=lambda one: order_of(one[0])):
            result.append((why, said & left))
            left = left & ~said
        return result

    def _say(self, each: PendingPods, look: int) -> Obstacle:
        key = self._existing_nodes.alike(each), look
        if key not in self._said:
            self._said[key] = self._existing_nodes.why(each, look) or NoPlaceByTerms()
        return self._said[key]

    def _has(self, column: int) -> Counts:
        if column not in self._amounts:
            self._amounts[column] = np.array([has.get(column, 0) for has in self._market.amounts], np.int64)
        return self._amounts[column]

    def _lacks(self, column: int, amount: int, shapes: Mask) -> Obstacle:
        return ShapesTooSmall(amount, self._resources[column], int(self._has(column)[shapes].max()))

    def _named(self, shapes: Mask) -> tuple[str, ...]:
        key = shapes.tobytes()
        if key not in self._names:
            self._names[key] = tuple([self._market.shapes[at].name for at in np.flatnonzero(shapes).tolist()])
        return self._names[key]


# --- Builds the result: each pod's node, a valid binding order, and obstacles of other pods.


class PackingRound(NamedTuple):
    """The result of one round; `order` as in Packed."""

    nodes: list[NewNode]
    unplaced: list[Unplaced]
    order: list[tuple[int, int]]


class PackingResultBuilder:
    """Owner of the pods' nodes; pods are identified by object identity while packing."""

    def __init__(self, waiting: list[PendingPods], sharing: Sharing) -> None:
        self._waiting = waiting
        self._sharing = sharing
        self._node_of: dict[int, int] = {}  # id of a pod -> number of its node
        self._pods: list[list[Pod]] = []
        self._why: dict[int, Obstacle] = {}  # id of a pod without a node -> obstacle

    def place(self, nodes: list[BinpackNode], lots: Lots) -> None:
        """Distributes the pods of the groups to the nodes."""
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
        """Removes pods that could not be bound because pods that they depend on have no node.

        Returns counts by class, for each node.
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
        """Records the obstacle of pods without a node."""
        self._why.update(dict.fromkeys(map(id, pods), why))

    def result(self, bought: list[BinpackNode], market: OfferMarket, refusals: ShapeRefusals) -> PackingRound:
        """The complete result, as if the step limit had not been reached."""
        number_of: dict[int, int] = {}
        nodes: list[NewNode] = []
        for number, pods in enumerate(self._pods):
            if pods:
                number_of[number] = len(nodes)
                nodes.append(_new_node(bought[number].offer, market, pods))
        why_else = NodesExhausted() if market.nodes_left <= 0 else ShapesExhausted()
        return PackingRound(nodes, list(self._unplaced(refusals, why_else)), list(self._order(number_of)))

    def _order(self, number_of: dict[int, int]) -> Iterator[tuple[int, int]]:
        """Pods assigned to places come first, since the others may be anywhere whatever other pods exist."""
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
        """Pods assigned to places, with their classes, in binding order."""
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
