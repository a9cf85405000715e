"""Why a pod goes nowhere: what rules out which shapes, and the one thing that says most."""

import numpy as np

from reconciler.fleet.binpack.existing_nodes import ExistingNodes
from reconciler.fleet.binpack.offers import OfferMarket
from reconciler.fleet.binpack.pending_pods import PendingPods
from reconciler.fleet.binpack.result import ShapeRefusal
from reconciler.fleet.obstacles import NoPlaceByTerms, NothingOffered, NotToBuy, NowhereToBeHad, ShapesTooSmall
from reconciler.fleet.rows import Counts, Mask
from reconciler.model.obstacle import Obstacle, order_of


class ShapeRefusals:
    """Asked class by class, within the fork of `standing`; `allowed` are the looks that each class may be on."""

    def __init__(
        self, market: OfferMarket, existing_nodes: ExistingNodes, allowed: list[Mask], resources: list[str]
    ) -> None:
        self._market = market
        self._existing_nodes = existing_nodes
        self._allowed = allowed
        self._resources = resources
        self._amounts: dict[int, Counts] = {}  # by resource, what each shape has
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
        """What rules out shapes for such a pod; each shape that is ruled out is named once."""
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
        """What says most, where every shape is ruled out: what none has enough of, or what rules out the most."""
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
        """Whether no shape is left."""
        return sum(len(refusal.shapes) for refusal in refusals) == len(self._market.shapes)

    def _ruled_out(self, each: PendingPods, shapes: Mask) -> list[tuple[Obstacle, Mask]]:
        """What labels, taints and pods that stand already say, of shapes none of whose looks the pod may be on."""
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
