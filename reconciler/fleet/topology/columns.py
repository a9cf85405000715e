"""Owner of the domains that nodes are in: for each label of nodes, the number of each row's value."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.rows import Rows


class Column(NamedTuple):
    """Domains by row. Rows without the label are in one of their own, numbered `size`, after all others."""

    ids: NDArray[np.intp]
    size: int


class Columns:
    """Columns as they are at one version of the rows; the rows' own arrays change in place."""

    def __init__(self) -> None:
        self._version = -1
        self._found: dict[str, Column] = {}

    def of(self, key: str, rows: Rows) -> Column:
        if self._version != rows.version:
            self._version = rows.version
            self._found.clear()
        found = self._found.get(key)
        if found is None:
            numbers = rows.column(key)
            size = int(numbers.max(initial=-1)) + 1
            found = self._found[key] = Column(np.where(numbers < 0, size, numbers).astype(np.intp), size)
        return found
