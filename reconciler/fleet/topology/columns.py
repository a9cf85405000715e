"""Owner of the domains that nodes are in: for each label of nodes, the number of each row's value."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.rows import Mask, NodeRows, Numbers


class DomainColumn(NamedTuple):
    """Domains by row. Rows without the label are in one of their own, numbered `size`, after all others."""

    ids: NDArray[np.intp]
    of_row: list[int]  # the same, for whoever asks about one row
    size: int

    def has_key(self, row: int) -> bool:
        return self.of_row[row] < self.size

    @property
    def with_key(self) -> Mask:
        """The rows that have the label."""
        mask: Mask = self.ids < self.size
        return mask


NOWHERE = DomainColumn(np.zeros(0, np.intp), [], 0)


class Columns:
    """Columns as they are at one version of the rows; the rows' own arrays change in place."""

    def __init__(self) -> None:
        self._version = -1
        self._found: dict[str, DomainColumn] = {}
        self._nobodys: DomainColumn | None = None  # the same for every label that no node has

    def of(self, key: str, rows: NodeRows) -> DomainColumn:
        if self._version != rows.version:
            self._version = rows.version
            self._found.clear()
            self._nobodys = None
        if not rows.has_label(key):
            if self._nobodys is None:
                self._nobodys = _column(rows.column(key))
            return self._nobodys
        domain_column = self._found.get(key)
        if domain_column is None:
            domain_column = self._found[key] = _column(rows.column(key))
        return domain_column


def _column(numbers: Numbers) -> DomainColumn:
    size = int(numbers.max(initial=-1)) + 1
    ids = np.where(numbers < 0, size, numbers).astype(np.intp)
    return DomainColumn(ids, ids.tolist(), size)
