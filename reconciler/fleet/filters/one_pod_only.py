"""Claims that one pod alone may use (ReadWriteOncePod): while a pod on some node does, no other can be anywhere."""

from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import VolumeInUse
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.fleet.storage.wanted import Key, claims_of
from reconciler.model.obstacle import Obstacle


class OnePodOnly:
    """How many pods use each claim, counted once somebody asks."""

    name: ClassVar[str] = "volumes of one pod"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._stored = fleet.part(StorageIndex)
        self._uses: dict[Key, int] = {}
        self._counts = False
        fleet.listen(self)

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(self._stored.wanted(pod_class, fleet).alone)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        return None if self._taken(pod_class, fleet) is None else np.zeros(fleet.rows.capacity, bool)

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return self._taken(pod_class, fleet) is None

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        taken = self._taken(pod_class, fleet)
        if taken is None:
            raise LookupError("no other pod uses its volumes")
        return VolumeInUse("/".join(taken))

    def added(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        if self._counts and pod_class.pod.spec.volumes:
            for key in claims_of(pod_class.pod):
                self._uses[key] = self._uses.get(key, 0) + count

    def removed(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        if self._counts and pod_class.pod.spec.volumes:
            for key in claims_of(pod_class.pod):
                self._uses[key] -= count
                if not self._uses[key]:
                    del self._uses[key]

    def came(self, row: int, fleet: Snapshot) -> None:
        pass

    def went(self, row: int, fleet: Snapshot) -> None:
        pass

    def fingerprint(self, fleet: Snapshot) -> object:
        self._count(fleet)
        return sorted(self._uses.items())

    def _taken(self, pod_class: PodClass, fleet: Snapshot) -> Key | None:
        alone = self._stored.wanted(pod_class, fleet).alone
        if not alone:
            return None
        self._count(fleet)
        return next((key for key in alone if key in self._uses), None)

    def _count(self, fleet: Snapshot) -> None:
        if self._counts:
            return
        self._counts = True
        for row in fleet.rows.row_of.values():
            for pod_class, count in fleet.booked_on(row).items():
                self.added(pod_class, row, count, fleet)
