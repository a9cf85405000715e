"""The best two pods to end a node with, or the best one: a node that was filled well enough is made full by them."""

from functools import cache

import numpy as np

from reconciler.fleet.binpack.nodes.node_load import NodeLoad
from reconciler.fleet.binpack.nodes.resource_prices import ResourcePrices
from reconciler.fleet.binpack.offers import Indices
from reconciler.fleet.rows import Counts, Mask

_MOST_SIZES = 64


class Pairs:
    """Each two sizes of pods that could come to a node, nothing being a size too."""

    __slots__ = ("_first", "_second", "_sizes", "amounts", "worth")

    def __init__(self, load: NodeLoad, among: Mask, worth: ResourcePrices) -> None:
        view = load.view
        is_open = np.zeros(view.sizes.shape[1], bool)
        is_open[view.size[among]] = True
        sizes = np.flatnonzero(is_open)
        if len(sizes) > _MOST_SIZES:
            sizes = sizes[(np.arange(_MOST_SIZES) * len(sizes)) // _MOST_SIZES]
        self._sizes = sizes
        amounts = np.zeros((len(view.sizes), len(sizes) + 1), np.int64)
        amounts[:, :-1] = view.sizes[:, sizes]
        self._first, self._second = _each_two(len(sizes) + 1)
        self.amounts: Counts = amounts[:, self._first] + amounts[:, self._second]
        each = worth.of(amounts)
        self.worth: Counts = each[self._first] + each[self._second]

    def sizes(self, pair: int) -> list[int]:
        """The sizes of a pair, as the view numbers them."""
        return [int(self._sizes[at]) for at in (self._first[pair], self._second[pair]) if at < len(self._sizes)]


@cache
def _each_two(count: int) -> tuple[Indices, Indices]:
    first, second = np.triu_indices(count)
    return first.astype(np.intp), second.astype(np.intp)
