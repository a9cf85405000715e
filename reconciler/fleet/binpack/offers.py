"""Owner of what is on offer: each shape in each place where it can be bought, cheapest first, and how many are left."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.amounts import counted
from reconciler.fleet.binpack.shape import Offering, Shape
from reconciler.fleet.classes import Classes
from reconciler.fleet.rows import Counts, Mask

_AS_MANY_AS_WANTED = 2**62
# Micro-dollars an hour. The largest price that decides: 2,048 nodes at this price fit into 64 bits together with the
# parts that the searches count in. Dearer offers come after cheaper ones, and count as equally dear in sums.
_DEAREST = 2**37
Indices = NDArray[np.intp]


class OfferMarket:
    """Offers by number, by price; `look` says as which kind of node pods see one (see looks.py)."""

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
        self.room: Counts = np.zeros((0, len(listed)), np.int64)  # of each resource asked for, in each offer
        self.left = [_AS_MANY_AS_WANTED if each.most_nodes is None else each.most_nodes for each in self.shapes]
        self._is_open = [True] * len(self.shapes)
        self.nodes_left = _AS_MANY_AS_WANTED if nodes is None else nodes
        self.open: Mask = np.ones(len(listed), bool)
        self.version = 0  # another whenever other offers are open

    def measure(self, columns: list[int]) -> None:
        """Says how much there is of the resources in `columns`."""
        by_shape = np.array([[has.get(column, 0) for has in self.amounts] for column in columns], np.int64)
        self.room = by_shape.reshape(len(columns), len(self.shapes))[:, self.shape]

    def buyable(self, offer: int) -> int:
        """How many nodes of an offer can still be bought."""
        return min(self.left[int(self.shape[offer])], self.nodes_left)

    def take(self, offer: int, count: int) -> None:
        """So many were bought; given back where the count is below 0."""
        shape = int(self.shape[offer])
        self.left[shape] -= count
        self.nodes_left -= count
        if (self.left[shape] > 0) != self._is_open[shape]:
            self._is_open[shape] = self.left[shape] > 0
            self.open[self.shape == shape] = self._is_open[shape]
            self.version += 1

    def holding(self, used: Counts) -> Mask:
        """Offers with room for so much."""
        mask = self.open.copy()
        for amount, room in zip(used.tolist(), self.room, strict=True):
            if amount:
                mask &= room >= amount
        return mask


def _check_distinct(shapes: Sequence[Shape]) -> None:
    for one, other in pairwise(shapes):
        if one.name == other.name:
            raise ValueError(f"two shapes are named {one.name}: give each a name of its own")
