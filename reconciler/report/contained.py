"""Parts of a report by themselves: one that raises is left out, and the report says so; owner of what was left out."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_LONGEST = 200  # characters of an error


class SectionContainment:
    """Of one report."""

    def __init__(self) -> None:
        self._notes: dict[str, None] = {}

    def part(self, what: str, run: Callable[[], T], instead: T) -> T:
        """What the part comes to, or `instead` where it raises."""
        try:
            return run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest of the report is told
            text = f"{type(error).__name__}: {error}"[:_LONGEST]
            self._notes[f"{what} could not be told, by a fault of reconciler: {text}"] = None
            return instead

    def several(self, what: str, run: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        """The same of a part that is a list; none of it where it raises."""
        none: tuple[T, ...] = ()
        return self.part(what, lambda: tuple(run()), none)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which parts are missing, a sentence each."""
        return tuple(self._notes)
