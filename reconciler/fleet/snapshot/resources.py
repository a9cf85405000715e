"""Owner of the amounts: allocatable and free resources of each node.

One column per resource, one row per node; stored by resource, so that a query over all nodes is one sweep. Only
resources that nodes had at the creation of the snapshot are stored so (`dense`). Pods may name any number of
resources that no node has: for these, only existing amounts are stored sparsely, and such a pod causes no sweep.
"""

import numpy as np

from reconciler.fleet.amounts import Lent
from reconciler.fleet.pod_classes import Classes, PodClass, Request
from reconciler.fleet.rows import Counts, Mask, NodeRows, Places, grown
from reconciler.model import names

_MOST_RARE_ROWS = 64  # nodes with a resource that is not dense; with more of them, the resource should be dense

_Amounts = dict[int, int]  # by column


class Left:
    """Free and taken amounts of a row."""

    __slots__ = ("dense", "taken")

    def __init__(self, dense: Counts, taken: _Amounts) -> None:
        self.dense = dense
        self.taken = taken


class NodeResources:
    """Exact integers in the units of kube-scheduler."""

    def __init__(self, classes: Classes, capacity: int) -> None:
        self._classes = classes
        self._columns = classes.columns
        self._dense = len(self._columns)  # number of dense columns
        self._free: Counts = np.zeros((self._dense, capacity), np.int64)
        self._allocatable: Counts = np.zeros_like(self._free)
        # Sparse columns.
        self._rare: dict[int, dict[int, int]] = {}  # column -> row -> allocatable
        self._rare_of: dict[int, _Amounts] = {}  # row -> column -> allocatable
        self._taken_of: dict[int, _Amounts] = {}  # row -> column -> taken

    @property
    def free(self) -> Counts:
        """Free amounts of the dense columns; negative if overbooked."""
        return self._free.T

    @property
    def allocatable(self) -> Counts:
        """Allocatable amounts of the dense columns."""
        return self._allocatable.T

    @property
    def is_sparse(self) -> bool:
        """Whether many nodes have a resource that is not dense."""
        return any(len(rows) > _MOST_RARE_ROWS for rows in self._rare.values())

    def free_at(self, row: int, column: int) -> int:
        """Free amount of one resource on one row."""
        if column < self._dense:
            return int(self._free[column, row])
        taken = self._taken_of.get(row)
        return self._has(row, column) - (taken.get(column, 0) if taken else 0)

    def allocatable_at(self, row: int, column: int) -> int:
        """Allocatable amount of one resource on one row."""
        return int(self._allocatable[column, row]) if column < self._dense else self._has(row, column)

    def free_of(self, column: int) -> Counts:
        """Free amount of one resource on each row; must not be modified."""
        if column < self._dense:
            mask: Counts = self._free[column]
            return mask
        mask = np.zeros(self._free.shape[1], np.int64)
        for row, amount in self._rare.get(column, {}).items():
            mask[row] += amount
        for row, taken in self._taken_of.items():
            mask[row] -= taken.get(column, 0)
        return mask

    def allocatable_of(self, column: int) -> Counts:
        """Allocatable amount of one resource on each row; must not be modified."""
        if column < self._dense:
            mask: Counts = self._allocatable[column]
            return mask
        mask = np.zeros(self._allocatable.shape[1], np.int64)
        for row, amount in self._rare.get(column, {}).items():
            mask[row] = amount
        return mask

    def roomy(self, request: Request) -> Mask:
        """The rows with enough free resources; a new array."""
        (first, least), *others = request
        mask: Mask = self._enough(first, least)
        for column, amount in others:
            np.logical_and(mask, self._enough(column, amount), out=mask)
        return mask

    def roomy_among(self, request: Request, rows: Places) -> Mask:
        """Which of the rows have enough free resources; a new array."""
        (first, least), *others = request
        mask: Mask = self._enough(first, least, rows)
        for column, amount in others:
            np.logical_and(mask, self._enough(column, amount, rows), out=mask)
        return mask

    def room(self, request: Request, row: int) -> int:
        """How many times the request fits on a row."""
        item, dense = self._free.item, self._dense
        if request[-1][0] < dense:  # columns are sorted
            return max(0, min([item(column, row) // amount for column, amount in request]))
        return max(0, min([self.free_at(row, column) // amount for column, amount in request]))

    def take(self, held: Request, row: int, count: int) -> None:
        """Takes resources; free amounts may become negative."""
        free, dense = self._free, self._dense
        for column, amount in held:
            if column < dense:
                free[column, row] -= amount * count
            else:
                self._take_rare(row, column, amount * count)

    def give(self, held: Request, row: int, count: int) -> None:
        """The inverse of `take`."""
        self.take(held, row, -count)

    def give_all(self, row: int) -> Left:
        """Frees all resources of the row; returns the previous amounts, for `leave`."""
        before = Left(self._free[:, row].copy(), self._taken_of.pop(row, {}))
        self._free[:, row] = self._allocatable[:, row]
        return before

    def leave(self, row: int, left: Left) -> None:
        """The inverse of `give_all`."""
        self._free[:, row] = left.dense
        if left.taken:
            self._taken_of[row] = left.taken

    def take_all(self, classes: list[PodClass], booked: list[tuple[int, int, int]]) -> None:
        """Books pods, given as the number of their class, their row and their count."""
        held: Counts = np.zeros((self._dense, len(classes)), np.int64)
        rare: dict[int, list[tuple[int, int]]] = {}
        for each in classes:
            for column, amount in each.held:
                if column < self._dense:
                    held[column, each.number] = amount
                else:
                    rare.setdefault(each.number, []).append((column, amount))
        which, at, counts = np.array(booked, np.intp).reshape(-1, 3).T
        for column, amounts in enumerate(held):
            if amounts.any():
                np.subtract.at(self._free[column], at, amounts[which] * counts)
        for number, row, count in booked if rare else ():
            for column, amount in rare.get(number, ()):
                self._take_rare(row, column, amount * count)

    def settle(self, row: int, has: Request) -> None:
        """Sets the allocatable amounts of a row; bookings stay."""
        self._free[:, row] -= self._allocatable[:, row]
        self._allocatable[:, row] = 0
        self._forget_rare(row)
        for column, amount in has:
            if column < self._dense:
                self._allocatable[column, row] = amount
                self._free[column, row] += amount
            else:
                self._add_rare(row, column, amount)

    def settle_all(self, rows: Places, has: list[Request]) -> None:
        """Sets the allocatable amounts of many rows without bookings; the resources of nodes become dense."""
        self._dense = self._classes.columns_of_nodes
        self._free = np.zeros((self._dense, self._free.shape[1]), np.int64)
        self._allocatable = np.zeros_like(self._free)
        for row, amounts in zip(rows.tolist(), has, strict=True):
            for column, amount in amounts:
                if column < self._dense:
                    self._allocatable[column, row] = amount
                else:
                    self._add_rare(row, column, amount)
        self._free[:] = self._allocatable

    def clear(self, row: int) -> None:
        """Removes the node."""
        self._allocatable[:, row] = self._free[:, row] = 0
        self._forget_rare(row)
        self._taken_of.pop(row, None)

    def grow(self, capacity: int) -> None:
        """Adds rows."""
        self._free = grown(self._free, capacity)
        self._allocatable = grown(self._allocatable, capacity)

    def fingerprint(self, row: int) -> object:
        """Allocatable and free amounts of the row, for its resources."""
        amounts = [
            (name, self.allocatable_at(row, column), self.free_at(row, column))
            for name, column in sorted(self._columns.items())
        ]
        return [each for each in amounts if each[1] or each[2]]

    def _has(self, row: int, column: int) -> int:
        has = self._rare_of.get(row)
        return has.get(column, 0) if has else 0

    def _enough(self, column: int, amount: int, rows: Places | None = None) -> Mask:
        if column < self._dense:
            mask: Mask = (self._free[column] if rows is None else self._free[column][rows]) >= amount
            return mask
        everywhere: Mask = np.zeros(self._free.shape[1], bool)
        for row in self._rare.get(column, ()):
            everywhere[row] = self.free_at(row, column) >= amount
        return everywhere if rows is None else everywhere[rows]

    def _take_rare(self, row: int, column: int, amount: int) -> None:
        taken = self._taken_of.setdefault(row, {})
        now = taken.get(column, 0) + amount
        if now:
            taken[column] = now
            return
        taken.pop(column, None)
        if not taken:
            del self._taken_of[row]

    def _add_rare(self, row: int, column: int, amount: int) -> None:
        if amount:
            self._rare.setdefault(column, {})[row] = amount
            self._rare_of.setdefault(row, {})[column] = amount

    def _forget_rare(self, row: int) -> None:
        for column in self._rare_of.pop(row, ()):
            del self._rare[column][row]
            if not self._rare[column]:
                del self._rare[column]


# --- Owner of the GPUs withheld on each row: lent GPUs whose Lease no observed pod there requests.
#
# A Lease holder need not be a pod that requests GPUs, so the sum of requests may be too low. As far as pods request
# GPUs, Leases count as theirs. The withheld amount is computed per observation and constant within a fork: lent GPUs do
# not move, and a new pod needs other GPUs.


class LentGpus:
    """Withholds amounts in a NodeResources."""

    def __init__(self, classes: Classes, rows: NodeRows, stock: NodeResources) -> None:
        self._classes, self._rows, self._stock = classes, rows, stock
        self._lent: Lent = {}
        self._withheld: dict[int, int] = {}

    def lend(self, lent: Lent) -> None:
        """Sets the lent GPUs by node name; `settle` must follow."""
        self._lent = lent

    def settle(self) -> None:
        """Withholds lent GPUs according to current bookings. Not allowed within a fork."""
        if not self._lent and not self._withheld:
            return
        column, row_of = self._classes.column(names.NVIDIA_GPU), self._rows.row_of
        lent = {row_of[name]: gpus for name, gpus in self._lent.items() if name in row_of}
        has, left = self._stock.allocatable_of(column), self._stock.free_of(column)
        for row in lent.keys() | self._withheld.keys():
            before, total = self._withheld.pop(row, 0), int(has[row])
            requested = total - int(left[row]) - before
            after = max(0, min(total, lent.get(row, 0)) - requested)
            if after:
                self._withheld[row] = after
            if after != before:
                self._stock.take(((column, after - before),), row, 1)

    def forget(self, row: int) -> None:
        """Removes the node."""
        self._withheld.pop(row, None)
