"""One round of packing: all that is asked of pods, shapes and fleet, in order."""

from collections.abc import Iterable

import numpy as np

from reconciler.fleet.binpack.domains.assignment import Sharing
from reconciler.fleet.binpack.domains.domains import Places
from reconciler.fleet.binpack.domains.grouping import Gathering
from reconciler.fleet.binpack.domains.hosting_cost import Hosting
from reconciler.fleet.binpack.domains.neighbours import Neighbours
from reconciler.fleet.binpack.domains.pod_terms import PodTerms
from reconciler.fleet.binpack.existing_nodes import Standing
from reconciler.fleet.binpack.nodes.node_by_node import Buying
from reconciler.fleet.binpack.nodes.pod_groups import ANYWHERE, Gathered, Lots
from reconciler.fleet.binpack.offers import Market
from reconciler.fleet.binpack.pending_pods import asked_columns, by_class, requests
from reconciler.fleet.binpack.refusals import Refusals
from reconciler.fleet.binpack.result_builder import Found, Outcome
from reconciler.fleet.binpack.steps import Steps
from reconciler.fleet.binpack.virtual_nodes import look_at
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model.cluster.pod import Pod


class Round:
    """Owner of what is found out on the way; within a fork of the fleet, since it imagines nodes."""

    def __init__(self, fleet: Snapshot, pods: Iterable[Pod], market: Market, steps: Steps) -> None:
        self._fleet = fleet
        self._market = market
        self._steps = steps
        self._waiting = by_class(fleet, pods)
        columns = asked_columns(self._waiting)
        looks = look_at(market, fleet, self._waiting)
        market.measure(columns)
        self._asked = requests(self._waiting, columns)
        self._standing = Standing(fleet, looks, steps)
        self._allowed = self._standing.allowed(self._waiting)
        self._standing.leave_out(self._useless(len(looks)))
        self._company = PodTerms(self._waiting, fleet.part(Counting))
        self._places = Places(looks, self._company)
        self._places.divide(self._waiting, self._standing)

    def pack(self) -> Found:
        """Settles which place each pod goes to that is tied to places, and buys."""
        waiting, market = self._waiting, self._market
        neighbours = Neighbours(waiting, self._company, self._places)
        neighbours.ask(self._standing)
        sharing = Sharing(waiting, self._company, neighbours, self._steps)
        outcome = Outcome(waiting, sharing)
        lots = Lots(self._gathered(sharing, outcome), market, self._places.count)
        buying = Buying(market, lots, self._places.of_look, self._steps)
        buying.run()
        nodes = buying.nodes
        outcome.place(nodes.all, lots)
        for number, held_back in outcome.hold_back().items():
            node = nodes.all[number]
            asked = [self._asked[at] * count for at, count in held_back.items()]
            nodes.shrink(node, node.used - sum(asked[1:], asked[0]))
        refusals = Refusals(market, self._standing, self._allowed, self._fleet.classes.resources)
        return outcome.found(nodes.all, market, refusals)

    def _useless(self, looks: int) -> Mask:
        """The looks that nobody who waits could be on: no node of them is bought, so that they make no domains."""
        market = self._market
        room = np.full((looks, len(market.room)), -1, np.int64)
        offers = np.flatnonzero(market.open)
        np.maximum.at(room, market.look[offers], market.room[:, offers].T)
        found: Mask = np.ones(looks, bool)
        alike: dict[int, list[int]] = {}
        for number, mask in enumerate(self._allowed):
            alike.setdefault(id(mask), []).append(number)
        for numbers in alike.values():
            asked = self._asked[numbers]
            for look in np.flatnonzero(self._allowed[numbers[0]] & found).tolist():
                found[look] = not (asked <= room[look]).all(axis=1).any()
        return found

    def _gathered(self, sharing: Sharing, outcome: Outcome) -> Gathered:
        """The pods in lots, once everybody is in the place that suits."""
        waiting, market, asked, allowed = self._waiting, self._market, self._asked, self._allowed
        hosting = Hosting(market, self._places.of_look, self._places.count)
        possible = hosting.possible(asked, allowed).tolist()
        gathering = Gathering(self._company, asked, allowed)
        costs = {}
        for each in waiting:
            if possible[each.number]:
                if sharing.tied[each.number]:
                    costs[each.number] = hosting.costs(asked[each.number], allowed[each.number])
                else:
                    gathering.add(each.number, ANYWHERE, each.pods)
        sharing.share_out(costs)
        gathering.add_tied(sharing.handed_out(), market, self._places.of_look[market.look])
        for number, (count, why) in sharing.refused.items():
            outcome.refuse(waiting[number].pods[-count:], why)
        for pod, why in gathering.refused:
            outcome.refuse([pod], why)
        return gathering.gathered()
