"""The interface of predicates: each is one reason why a pod cannot be on a node."""

from typing import ClassVar, Protocol

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.plan.decision import Obstacle


class Predicate(Protocol):
    """Created once per snapshot (`fleet.part(ThePredicate)`); keeps counters up to date as a listener.

    `mask` and `fits` agree on every row that is alive.
    """

    name: ClassVar[str]
    static: ClassVar[bool]  # depends only on labels, taints and node names: evaluated once per Needs

    def __init__(self, fleet: Snapshot) -> None: ...

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        """Whether the predicate could refuse such a pod anywhere, given the current bookings; fast."""

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        """The rows that the predicate allows; None: all rows. Callers must not modify the mask."""

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        """Like `mask`, for one row; fast."""

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        """The obstacle for a row that does not fit."""
