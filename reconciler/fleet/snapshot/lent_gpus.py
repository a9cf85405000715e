"""Owner of what of each row is withheld because it is lent: GPUs with a Lease that no pod seen there asks for.

Whoever holds a Lease need not be a pod that requests GPUs, so that the sum of what pods ask for says too little. As far
as they do ask, the Leases are theirs. What is withheld is found out from one sighting to the next, and stays the same
within a fork: nothing that is lent is moved, and a pod that comes needs GPUs of its own.
"""

from reconciler.fleet.classes import Classes
from reconciler.fleet.gpu_requests import Lent
from reconciler.fleet.rows import NodeRows
from reconciler.fleet.snapshot.resources import NodeResources
from reconciler.model import names


class LentGpus:
    """Withholds amounts of a stock."""

    def __init__(self, classes: Classes, rows: NodeRows, stock: NodeResources) -> None:
        self._classes, self._rows, self._stock = classes, rows, stock
        self._lent: Lent = {}
        self._withheld: dict[int, int] = {}

    def lend(self, lent: Lent) -> None:
        """What is lent now, by the names of nodes; `settle` is to follow."""
        self._lent = lent

    def settle(self) -> None:
        """Withholds what is lent, by what is booked now. Not within a fork."""
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
        """There is no node any more."""
        self._withheld.pop(row, None)
