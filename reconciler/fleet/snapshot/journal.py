"""Owner of the journal: what undoes each change of a what-if, newest last, for as long as a fork is open."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

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
