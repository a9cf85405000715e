"""Owner of the amounts: what each node has of each resource, and what is left of it.

A column a resource, a row a node; kept a resource at a time, so that asking all nodes about one is one sweep.
"""

import numpy as np

from reconciler.fleet.classes import Classes
from reconciler.fleet.pod_class import PodClass, Request
from reconciler.fleet.rows import Counts, Mask, Places, grown


class Stock:
    """Exact whole numbers, as the scheduler counts them."""

    def __init__(self, classes: Classes, capacity: int) -> None:
        self._columns = classes.columns
        classes.on_column.append(self._widen)
        self._free: Counts = np.zeros((len(self._columns), capacity), np.int64)
        self._allocatable: Counts = np.zeros_like(self._free)

    @property
    def free(self) -> Counts:
        """What is left; less than 0 where more is booked than there is."""
        return self._free.T

    @property
    def allocatable(self) -> Counts:
        """What pods may have."""
        return self._allocatable.T

    def free_of(self, column: int) -> Counts:
        """What is left of one resource on each row."""
        found: Counts = self._free[column]
        return found

    def allocatable_of(self, column: int) -> Counts:
        """What pods may have of one resource on each row."""
        found: Counts = self._allocatable[column]
        return found

    def roomy(self, request: Request) -> Mask:
        """Where what is left is enough; a new array."""
        (first, least), *others = request
        found: Mask = self._free[first] >= least
        for column, amount in others:
            np.logical_and(found, self._free[column] >= amount, out=found)
        return found

    def roomy_among(self, request: Request, rows: Places) -> Mask:
        """Which of the rows have enough left; a new array."""
        (first, least), *others = request
        found: Mask = self._free[first][rows] >= least
        for column, amount in others:
            np.logical_and(found, self._free[column][rows] >= amount, out=found)
        return found

    def room(self, request: Request, row: int) -> int:
        """How many times what is left of a row is enough."""
        item = self._free.item
        return max(0, min([item(column, row) // amount for column, amount in request]))

    def take(self, held: Request, row: int, count: int) -> None:
        """Less than nothing may be left."""
        free = self._free
        for column, amount in held:
            free[column, row] -= amount * count

    def give(self, held: Request, row: int, count: int) -> None:
        """The inverse of `take`."""
        free = self._free
        for column, amount in held:
            free[column, row] += amount * count

    def give_all(self, row: int) -> Counts:
        """Nothing of the row is taken any more; what was left of it, to `leave` so again."""
        before: Counts = self._free[:, row].copy()
        self._free[:, row] = self._allocatable[:, row]
        return before

    def leave(self, row: int, left: Counts) -> None:
        """The inverse of `give_all`. Of a resource that got its column since, nothing was taken."""
        self._free[: len(left), row] = left

    def take_all(self, classes: list[PodClass], numbers: list[int], rows: list[int]) -> None:
        """One pod of a class on a row, for each pair of the number of a class and a row."""
        held: Counts = np.zeros((len(self._free), len(classes)), np.int64)
        for each in classes:
            for column, amount in each.held:
                held[column, each.number] = amount
        at, which = np.array(rows, np.intp), np.array(numbers, np.intp)
        for column, amounts in enumerate(held):
            if amounts.any():
                np.subtract.at(self._free[column], at, amounts[which])

    def settle(self, row: int, has: Request) -> None:
        """What the node of a row has now; what is taken stays taken."""
        self._free[:, row] -= self._allocatable[:, row]
        self._allocatable[:, row] = 0
        for column, amount in has:
            self._allocatable[column, row] = amount
            self._free[column, row] += amount

    def settle_all(self, rows: Places, has: list[Request]) -> None:
        """What the nodes of many rows have, of which nothing is taken yet."""
        for row, amounts in zip(rows.tolist(), has, strict=True):
            for column, amount in amounts:
                self._allocatable[column, row] = amount
        self._free[:] = self._allocatable

    def clear(self, row: int) -> None:
        """There is no node any more."""
        self._allocatable[:, row] = self._free[:, row] = 0

    def grow(self, capacity: int) -> None:
        """More rows."""
        self._free = grown(self._free, capacity)
        self._allocatable = grown(self._allocatable, capacity)

    def fingerprint(self, row: int) -> object:
        """What the row has and has left, of the resources that it has or that are taken."""
        free, allocatable = self.free[row].tolist(), self.allocatable[row].tolist()
        return [
            (name, allocatable[column], free[column])
            for name, column in sorted(self._columns.items())
            if allocatable[column] or free[column]
        ]

    def _widen(self) -> None:
        """A resource that nobody asked for before gets its column."""
        more = np.zeros((len(self._columns) - len(self._free), self._free.shape[1]), np.int64)
        self._free = np.concatenate([self._free, more])
        self._allocatable = np.concatenate([self._allocatable, more])
