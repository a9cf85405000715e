"""One round of packing: all that is asked of pods, shapes and fleet, in order."""

from collections.abc import Iterable

import numpy as np

from reconciler.fleet.binpack.domains.assignment import Sharing
from reconciler.fleet.binpack.domains.domains import Places
from reconciler.fleet.binpack.domains.grouping import Gathering
from reconciler.fleet.binpack.domains.hosting_cost import Hosting
from reconciler.fleet.binpack.domains.neighbours import Neighbours
from reconciler.fleet.binpack.domains.pod_terms import PendingPodTerms
from reconciler.fleet.binpack.existing_nodes import ExistingNodes
from reconciler.fleet.binpack.nodes.node_by_node import NodeByNodePacker
from reconciler.fleet.binpack.nodes.pod_groups import ANYWHERE, Gathered, Lots
from reconciler.fleet.binpack.offers import OfferMarket
from reconciler.fleet.binpack.pending_pods import by_class, requested_columns, requests
from reconciler.fleet.binpack.refusals import ShapeRefusals
from reconciler.fleet.binpack.result_builder import PackingResultBuilder, PackingRound
from reconciler.fleet.binpack.steps import Steps
from reconciler.fleet.binpack.virtual_nodes import look_at
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model.cluster.pod import Pod


class Round:
    """Owner of what is found out on the way; within a fork of the fleet, since it imagines nodes."""

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
        """Settles which place each pod goes to that is tied to places, and buys."""
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
        """The looks that nobody who waits could be on: no node of them is bought, so that they make no domains."""
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
        """The pods in lots, once everybody is in the place that suits."""
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
