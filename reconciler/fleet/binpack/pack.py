"""Packs pods onto new nodes: minimal cost, then minimal number of nodes, respecting all filters of the scheduler.

Inter-pod terms are handled in two steps. First, pods with terms on zones, or on other labels that differ between
offers, are assigned to places one by one (domains/assignment.py). Then nodes are launched and filled
(nodes/node_by_node.py), where only host rules remain (domains/pod_terms.py). Pods without a place are retried beside
the new nodes: exhausted offers no longer count then, nor do domains that no remaining pod could be in. The result does
not depend on the order of pods and shapes.
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from reconciler.fleet.binpack.domains.assignment import Gathering, Hosting, Sharing
from reconciler.fleet.binpack.domains.domains import Neighbours, Places
from reconciler.fleet.binpack.domains.pod_terms import PendingPodTerms
from reconciler.fleet.binpack.inputs import ExistingNodes, Steps, by_class, requested_columns, requests
from reconciler.fleet.binpack.nodes.node_by_node import NodeByNodePacker
from reconciler.fleet.binpack.nodes.pod_groups import ANYWHERE, Gathered, Lots
from reconciler.fleet.binpack.offers import BinpackLimits, OfferMarket, Shape, labels_of, look_at, new_node
from reconciler.fleet.binpack.result import NewNode, Packed, PackingResultBuilder, PackingRound, ShapeRefusals
from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model.cluster.pod import Pod

NO_LIMITS = BinpackLimits()


def pack(fleet: Snapshot, pods: Iterable[Pod], shapes: Sequence[Shape], limits: BinpackLimits = NO_LIMITS) -> Packed:
    """New nodes for the pods, beside existing nodes and pods. The fleet is left unchanged."""
    with fleet.fork():
        steps = Steps(limits.steps)
        market = OfferMarket(shapes, fleet.classes, limits.nodes)
        bill = _Bill(fleet, market, steps)
        left: Sequence[Pod] = list(pods)
        while True:
            with fleet.fork():
                packing_round = Round(fleet, left, market, steps).pack()
            bill.take(packing_round)
            left = [each.pod for each in packing_round.unplaced]
            if not left or not packing_round.nodes or steps.are_spent:
                break
            bill.book()
        # Not before: a node launched later could be in a domain without such pods, and then this domain would have too
        # many.
        while left and (joined := bill.join(left)):
            left = [pod for pod in left if id(pod) not in joined]
        return bill.packed(packing_round, left)


class _Bill:
    """Owner of the results of all rounds."""

    def __init__(self, fleet: Snapshot, market: OfferMarket, steps: Steps) -> None:
        self._fleet = fleet
        self._market = market
        self._steps = steps
        self._nodes: list[NewNode] = []
        self._pods: list[list[Pod]] = []
        self._number_of: dict[int, int] = {}  # row -> node, for booked nodes
        self._order: list[tuple[int, int]] = []

    def take(self, packing_round: PackingRound) -> None:
        """Adds the nodes of one round."""
        first = len(self._nodes)
        self._order += [(first + number, index) for number, index in packing_round.order]
        self._nodes += packing_round.nodes
        self._pods += [list(node.pods) for node in packing_round.nodes]

    def book(self) -> None:
        """Books the new nodes in the fleet."""
        fleet = self._fleet
        shapes = {shape.name: shape for shape in self._market.shapes}
        for number in range(len(self._number_of), len(self._nodes)):
            node = self._nodes[number]
            shape = shapes[node.shape]
            labels = labels_of(shape, node.zone, node.capacity_type)
            row = fleet.bring(new_node(f"bought/{number}", labels, shape))
            self._number_of[row] = number
            for pod in node.pods:
                fleet.add(fleet.classes.of(pod).anew, row)

    def join(self, pods: Sequence[Pod]) -> set[int]:
        """Places pods onto booked new nodes; returns the ids of placed pods."""
        fleet, judging = self._fleet, self._fleet.part(FilterChain)
        is_bought: Mask = np.zeros(fleet.rows.capacity, bool)
        is_bought[list(self._number_of)] = True
        full: set[PodClass] = set()
        joined: set[int] = set()
        for pod in pods if self._number_of else ():
            pod_class = fleet.classes.of(pod).anew
            if pod_class in full or self._steps.are_spent:
                continue
            self._steps.take(fleet.rows.capacity)
            rows = np.flatnonzero(judging.mask(pod_class) & is_bought)
            if not len(rows):
                full.add(pod_class)
                continue
            row = int(rows[0])
            fleet.add(pod_class, row)
            number = self._number_of[row]
            self._order.append((number, len(self._pods[number])))
            self._pods[number].append(pod)
            joined.add(id(pod))
        return joined

    def packed(self, last: PackingRound, left: Sequence[Pod]) -> Packed:
        """The complete result; the last round's obstacles apply to the remaining pods."""
        nodes = [
            node if len(node.pods) == len(pods) else msgspec.structs.replace(node, pods=tuple(pods))
            for node, pods in zip(self._nodes, self._pods, strict=True)
        ]
        # With more steps, these pods might have found a node, if the shapes themselves allow it.
        is_cut_short = self._steps.are_spent
        ids = set(map(id, left))
        rest = [each for each in last.unplaced if id(each.pod) in ids]
        return Packed(
            nodes=tuple(nodes),
            unplaced=tuple([each for each in rest if each.is_ruled_out or not is_cut_short]),
            not_evaluated=tuple([each.pod for each in rest if is_cut_short and not each.is_ruled_out]),
            order=tuple(self._order),
            steps=self._steps.done,
        )


# --- One round of packing: evaluates pods, shapes and fleet, in order.


class Round:
    """Owner of the intermediate results; requires an open fork, since it adds virtual nodes."""

    def __init__(self, fleet: Snapshot, pods: Iterable[Pod], market: OfferMarket, steps: Steps) -> None:
        self._fleet = fleet
        self._market = market
        self._steps = steps
        self._waiting = by_class(fleet, pods)
        columns = requested_columns(self._waiting)
        looks = look_at(market, fleet, self._waiting)
        market.measure(columns)
        self._requested = requests(self._waiting, columns)
        self._existing_nodes = ExistingNodes(fleet, looks, steps)
        self._allowed = self._existing_nodes.allowed(self._waiting)
        self._existing_nodes.leave_out(self._useless(len(looks)))
        self._company = PendingPodTerms(self._waiting, fleet.part(Counting))
        self._places = Places(looks, self._company)
        self._places.divide(self._waiting, self._existing_nodes)

    def pack(self) -> PackingRound:
        """Assigns places to the pods that depend on them, and launches nodes."""
        waiting, market = self._waiting, self._market
        neighbours = Neighbours(waiting, self._company, self._places)
        neighbours.ask(self._existing_nodes)
        sharing = Sharing(waiting, self._company, neighbours, self._steps)
        outcome = PackingResultBuilder(waiting, sharing)
        lots = Lots(self._gathered(sharing, outcome), market, self._places.count)
        buying = NodeByNodePacker(market, lots, self._places.of_look, self._steps)
        buying.run()
        nodes = buying.nodes
        outcome.place(nodes.all, lots)
        for number, held_back in outcome.hold_back().items():
            node = nodes.all[number]
            asked = [self._requested[at] * count for at, count in held_back.items()]
            nodes.shrink(node, node.used - sum(asked[1:], asked[0]))
        refusals = ShapeRefusals(market, self._existing_nodes, self._allowed, self._fleet.classes.resources)
        return outcome.result(nodes.all, market, refusals)

    def _useless(self, looks: int) -> Mask:
        """Virtual nodes that no pending pod allows: they are never launched and create no domains."""
        market = self._market
        room = np.full((looks, len(market.room)), -1, np.int64)
        offers = np.flatnonzero(market.open)
        np.maximum.at(room, market.look[offers], market.room[:, offers].T)
        result: Mask = np.ones(looks, bool)
        alike: dict[int, list[int]] = {}
        for number, mask in enumerate(self._allowed):
            alike.setdefault(id(mask), []).append(number)
        for numbers in alike.values():
            requested = self._requested[numbers]
            for look in np.flatnonzero(self._allowed[numbers[0]] & result).tolist():
                result[look] = not (requested <= room[look]).all(axis=1).any()
        return result

    def _gathered(self, sharing: Sharing, outcome: PackingResultBuilder) -> Gathered:
        """The pods in groups, after the assignment of places."""
        waiting, market, requested, allowed = self._waiting, self._market, self._requested, self._allowed
        hosting = Hosting(market, self._places.of_look, self._places.count)
        possible = hosting.possible(requested, allowed).tolist()
        gathering = Gathering(self._company, requested, allowed)
        costs = {}
        for each in waiting:
            if possible[each.number]:
                if sharing.tied[each.number]:
                    costs[each.number] = hosting.costs(requested[each.number], allowed[each.number])
                else:
                    gathering.add(each.number, ANYWHERE, each.pods)
        sharing.share_out(costs)
        gathering.add_tied(sharing.handed_out(), market, self._places.of_look[market.look])
        for number, (count, why) in sharing.refused.items():
            outcome.refuse(waiting[number].pods[-count:], why)
        for pod, why in gathering.refused:
            outcome.refuse([pod], why)
        return gathering.gathered()
