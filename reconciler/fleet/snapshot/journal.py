"""Owner of the journal: what undoes each change of a what-if, newest last, for as long as a fork is open."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

import numpy as np

from reconciler.fleet.pod_classes import Classes, PodClass
from reconciler.fleet.rows import NodeRows

Undo = tuple[Callable[..., None], *tuple[object, ...]]  # what to call, and with what


class Journal:
    """The inverses of what was changed since the outermost fork began."""

    def __init__(self) -> None:
        self.is_open = False
        self._undos: list[Undo] = []
        self._began: list[int] = []  # of each open fork: how many inverses there were

    def note(self, *undo: *Undo) -> None:
        """Without a fork that is open nothing is ever taken back."""
        if self.is_open:
            self._undos.append(undo)

    def begin(self) -> None:
        self._began.append(len(self._undos))
        self.is_open = True

    def keep(self) -> None:
        """The innermost fork's changes become those of the one around it, or for good."""
        self._began.pop()
        if not self._began:
            self._undos.clear()
            self.is_open = False

    def revert(self) -> None:
        """Takes the innermost fork's changes back, newest first; nothing of that is noted down."""
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
    """What if: taken back at the end of its `with`, unless it was committed."""

    __slots__ = ("_journal", "_kept")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept = False

    def commit(self) -> None:
        """Keeps what was changed, for the fork around it if there is one."""
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


# --- Owner of how much a what-if may remember of pods and nodes that are gone, in bytes.
#
# Classes of pods and sets of taints are kept for as long as the what-if lives, so that a number always means the same.
# Where each pod or node brings its own, nearly all of them are soon nobody's: a smart pod names the nodes that it is
# not for, thousands where there are thousands, and a mark for deletion has the hour of its node. So they are weighed,
# not counted.

_LEAST_BYTES, _LEAST_BYTES_A_ROW = 262_144, 1_024  # that nobody minds
_TIMES = 3  # as much as what is there needs
_TAINTS_BYTES = 512  # that a set of taints takes, about
_PLACE_BYTES = 4  # a row, of the column of a label that only one class asks about


class Crowding:
    """Asked often; it looks what is there only when as much has come as may."""

    def __init__(self, classes: Classes, rows: NodeRows) -> None:
        self._classes = classes
        self._rows = rows
        self._most = self._least()

    def is_over(self, in_use: Callable[[], Iterable[PodClass]]) -> bool:
        """Whether most of what is remembered is of nobody; `in_use`: the classes of pods that are there."""
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
