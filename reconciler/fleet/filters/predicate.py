"""What a predicate is: one reason why a pod can't be on a node."""

from typing import ClassVar, Protocol

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.plan.decision import Obstacle


class Predicate(Protocol):
    """Made from a what-if (`fleet.part(ThePredicate)`), once; keeps what figures it needs by listening.

    `mask` and `fits` agree on every row that is alive.
    """

    name: ClassVar[str]
    static: ClassVar[bool]  # labels, taints and names of nodes alone decide: asked once for all pods of the same Needs

    def __init__(self, fleet: Snapshot) -> None: ...

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        """Whether it could refuse such a pod anywhere, as things are booked now; quick."""

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        """Where it has nothing against such a pod; None: nowhere anything. Not to be changed by who asks."""

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        """The same for one row; quick."""

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        """The facts, where it does not fit."""
