"""Why a pod goes nowhere: what rules out which shapes, and the one thing that says most."""

import numpy as np

from reconciler.fleet.amounts import CPU
from reconciler.fleet.binpack.existing_nodes import Standing
from reconciler.fleet.binpack.offers import Market
from reconciler.fleet.binpack.pending_pods import Waiting
from reconciler.fleet.binpack.result import Refusal
from reconciler.fleet.rows import Counts, Mask

NO_SHAPE = "nothing is on offer"
NOT_TO_BUY = "no node of it may be bought"
NOWHERE = "it is not to be had anywhere"


class Refusals:
    """Asked class by class, within the fork of `standing`; `allowed` are the looks that each class may be on."""

    def __init__(self, market: Market, standing: Standing, allowed: list[Mask], resources: list[str]) -> None:
        self._market = market
        self._standing = standing
        self._allowed = allowed
        self._resources = resources
        self._amounts: dict[int, Counts] = {}  # by resource, what each shape has
        self._said: dict[tuple[object, int], str] = {}
        self._names: dict[bytes, tuple[str, ...]] = {}
        is_barred = np.array([each.most_nodes == 0 for each in market.shapes], bool)
        is_offered = np.zeros(len(market.shapes), bool)
        is_offered[market.shape] = True
        self._not_for_sale = [(NOT_TO_BUY, is_barred), (NOWHERE, ~is_offered & ~is_barred)]

    def of(self, each: Waiting) -> tuple[Refusal, ...]:
        """What rules out shapes for such a pod; each shape that is ruled out is named once."""
        found = list(self._not_for_sale)
        left = ~np.logical_or(*[shapes for _, shapes in found])
        for column, amount in each.pod_class.request:
            lacking = left & (self._has(column) < amount)
            if lacking.any():
                found.append((self._lacks(column, amount, lacking), lacking))
                left &= ~lacking
        found += self._ruled_out(each, left)
        return tuple(Refusal(why, self._named(shapes)) for why, shapes in found if shapes.any())

    def sentence(self, each: Waiting, refusals: tuple[Refusal, ...]) -> str:
        """What says most, where every shape is ruled out: what none has enough of, or what rules out the most."""
        if not self.are_of_all(refusals):
            return ""
        if not refusals:
            return NO_SHAPE
        everywhere: Mask = np.ones(len(self._market.shapes), bool)
        for column, amount in each.pod_class.request:
            if (self._has(column) < amount).all():
                return self._lacks(column, amount, everywhere)
        return max(refusals, key=lambda refusal: (len(refusal.shapes), refusal.why)).why

    def are_of_all(self, refusals: tuple[Refusal, ...]) -> bool:
        """Whether no shape is left."""
        return sum(len(refusal.shapes) for refusal in refusals) == len(self._market.shapes)

    def _ruled_out(self, each: Waiting, shapes: Mask) -> list[tuple[str, Mask]]:
        """What labels, taints and pods that stand already say, of shapes none of whose looks the pod may be on."""
        market, allowed = self._market, self._allowed[each.number]
        open_to: Mask = np.zeros(len(market.shapes), bool)
        open_to[market.shape[allowed[market.look]]] = True
        offers = np.flatnonzero((shapes & ~open_to)[market.shape])
        looks = market.look[offers[np.unique(market.shape[offers], return_index=True)[1]]]
        found: dict[str, Mask] = {}
        for look in np.unique(looks).tolist():
            said = found.setdefault(self._say(each, look), np.zeros(len(shapes), bool))
            said[market.shape[market.look == look]] = True
        left = shapes & ~open_to
        told = []
        for why, said in sorted(found.items()):
            told.append((why, said & left))
            left = left & ~said
        return told

    def _say(self, each: Waiting, look: int) -> str:
        key = self._standing.alike(each), look
        if key not in self._said:
            self._said[key] = self._standing.why(each, look)
        return self._said[key]

    def _has(self, column: int) -> Counts:
        if column not in self._amounts:
            self._amounts[column] = np.array([has.get(column, 0) for has in self._market.amounts], np.int64)
        return self._amounts[column]

    def _lacks(self, column: int, amount: int, shapes: Mask) -> str:
        unit = "m" if self._resources[column] == CPU else ""
        most = int(self._has(column)[shapes].max())
        return f"asks for {amount}{unit} {self._resources[column]}, and {most}{unit} is the most there is"

    def _named(self, shapes: Mask) -> tuple[str, ...]:
        key = shapes.tobytes()
        if key not in self._names:
            self._names[key] = tuple([self._market.shapes[at].name for at in np.flatnonzero(shapes).tolist()])
        return self._names[key]
