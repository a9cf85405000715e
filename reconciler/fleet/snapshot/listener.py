"""Who is told of what is booked on a what-if."""

from typing import TYPE_CHECKING, Protocol

from reconciler.fleet.pod_class import PodClass

if TYPE_CHECKING:
    from reconciler.fleet.snapshot.snapshot import Snapshot


class Listener(Protocol):
    """Keeps figures of its own about what is booked where; told after each change, takings-back included."""

    def added(self, pod_class: PodClass, row: int, count: int, fleet: "Snapshot") -> None: ...
    def removed(self, pod_class: PodClass, row: int, count: int, fleet: "Snapshot") -> None: ...
    def came(self, row: int, fleet: "Snapshot") -> None:
        """A node is there now; nothing is booked on it yet."""

    def went(self, row: int, fleet: "Snapshot") -> None:
        """A node is no longer there; nothing is booked on it any more. Its labels can still be read."""

    def fingerprint(self, fleet: "Snapshot") -> object:
        """All figures: the same for the same bookings, however they came about; empty where there are none."""


def says_anything(figures: object) -> bool:
    """Whether there is anything in what may be lists within lists."""
    return any(map(says_anything, figures)) if isinstance(figures, list | tuple) else bool(figures)
