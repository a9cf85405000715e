"""Owner of the journal: the inverse of each change while a fork is open, newest last."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

import numpy as np

from reconciler.fleet.pod_classes import Classes, PodClass
from reconciler.fleet.rows import NodeRows

Undo = tuple[Callable[..., None], *tuple[object, ...]]  # function and arguments


class Journal:
    """The inverses of all changes since the outermost fork began."""

    def __init__(self) -> None:
        self.is_open = False
        self._undos: list[Undo] = []
        self._began: list[int] = []  # for each open fork: the length of the journal at its start

    def note(self, *undo: *Undo) -> None:
        """Records an inverse. Without an open fork, changes are permanent and not recorded."""
        if self.is_open:
            self._undos.append(undo)

    def begin(self) -> None:
        self._began.append(len(self._undos))
        self.is_open = True

    def keep(self) -> None:
        """Commits the innermost fork: its changes belong to the enclosing fork, or become permanent."""
        self._began.pop()
        if not self._began:
            self._undos.clear()
            self.is_open = False

    def revert(self) -> None:
        """Rolls back the innermost fork, newest change first; the rollback itself is not recorded."""
        began = self._began.pop()
        undos = self._undos[began:]
        del self._undos[began:]
        self.is_open = False
        try:
            for undo, *arguments in reversed(undos):
                undo(*arguments)
        finally:
            self.is_open = bool(self._began)


class Fork:
    """A what-if scope: rolled back at the end of the `with` block unless committed."""

    __slots__ = ("_journal", "_kept")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept = False

    def commit(self) -> None:
        """Keeps the changes, for the enclosing fork if there is one."""
        self._kept = True

    def __enter__(self) -> Self:
        self._journal.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept and kind is None:
            self._journal.keep()
        else:
            self._journal.revert()


# --- Owner of the memory limit for classes and taints of removed pods and nodes, in bytes.
#
# Pod classes and taint sets are kept for the lifetime of the snapshot, so that a number always has the same meaning. If
# each pod or node has its own, most of them soon become unused: a smart pod names the nodes that it must avoid,
# possibly thousands, and a deletion taint contains a time. Therefore their size is measured, not their number.

_LEAST_BYTES, _LEAST_BYTES_A_ROW = 262_144, 1_024  # minimum limit
_TIMES = 3  # multiple of the size that is in use
_TAINTS_BYTES = 512  # approximate size of a taint set
_PLACE_BYTES = 4  # per row, for the column of a label that only one class uses


class Crowding:
    """Cheap to query: usage is only measured after enough growth."""

    def __init__(self, classes: Classes, rows: NodeRows) -> None:
        self._classes = classes
        self._rows = rows
        self._most = self._least()

    def is_over(self, in_use: Callable[[], Iterable[PodClass]]) -> bool:
        """Whether most of the memory is unused; `in_use`: the classes of existing pods."""
        classes = self._classes
        taken = self._bytes(classes.written_bytes, len(classes.all), len(self._rows.taint_groups))
        if taken <= self._most:
            return False
        self._most = max(self._least(), _TIMES * self._needed(in_use()))
        return taken > self._most

    def _needed(self, in_use: Iterable[PodClass]) -> int:
        pod_classes = set(in_use)
        pod_classes |= {each.anew for each in pod_classes}
        borne = np.unique(self._rows.taint_group[self._rows.alive])
        return self._bytes(sum(len(each.text) for each in pod_classes), len(pod_classes), len(borne))

    def _bytes(self, written_bytes: int, classes: int, taints: int) -> int:
        return written_bytes + classes * _PLACE_BYTES * self._rows.capacity + taints * _TAINTS_BYTES

    def _least(self) -> int:
        return _LEAST_BYTES + _LEAST_BYTES_A_ROW * self._rows.capacity
