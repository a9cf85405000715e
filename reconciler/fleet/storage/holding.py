"""Owner of the number of volumes per driver on each row, and of their limits; computed at the first query.

A volume counts once, however many pods of the node use it. An attached volume without an observed pod counts until
it is detached; a volume of a pod that the simulation removes is removed with the pod.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Counts, grown
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.fleet.storage.wanted import Held
from reconciler.model.cluster.node import CsiNode, VolumeAttachment

NO_LIMIT = 2**31


class Holding:
    """A part of a snapshot: `fleet.part(Holding)`. Only drivers with a limit on any node are counted."""

    def __init__(self, fleet: Snapshot) -> None:
        self.limits: dict[str, Counts] = {}  # driver -> limit by row
        self.counts: dict[str, Counts] = {}
        self._stored = fleet.part(StorageIndex)
        self._version = -1  # of the stored objects
        self._nodes: tuple[CsiNode, ...] | None = None
        self._attachments: tuple[VolumeAttachment, ...] | None = None
        self._sighting = -1
        self._node: dict[str, CsiNode] = {}
        self._uses: dict[Held, dict[int, int]] = {}  # volume -> row -> number of pods that use it
        self._besides: dict[str, set[Held]] = {}  # node -> attached volumes that no observed pod there uses
        fleet.rows.on_growth.append(self._grow)
        fleet.listen(self)

    def renew(self, fleet: Snapshot) -> None:
        """Recounts if the observed state has changed."""
        if self._is_current(fleet):
            return
        observed, rows = fleet.observed, fleet.rows
        self._version, self._sighting = self._stored.version, fleet.sightings
        self._nodes, self._attachments = observed.csi_nodes, observed.attachments
        self._node = {each.metadata.name: each for each in observed.csi_nodes}
        drivers = {name for node in observed.csi_nodes for name, _ in _limits(node)}
        self.limits = {each: np.full(rows.capacity, NO_LIMIT, np.int64) for each in sorted(drivers)}
        self.counts = {each: np.zeros(rows.capacity, np.int64) for each in sorted(drivers)}
        self._uses, self._besides = {}, self._attached(fleet)
        for row in rows.row_of.values() if drivers else ():
            if rows.standing[row]:
                self.came(row, fleet)
            for pod_class, count in fleet.booked_on(row).items():
                if pod_class.pod.spec.volumes:
                    self.added(pod_class, row, count, fleet)

    def rows_of(self, held: Held) -> Iterable[int]:
        """The rows with a pod that uses a volume."""
        return self._uses.get(held, ())

    def added(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        if pod_class.pod.spec.volumes and self._is_current(fleet):
            for held in self._stored.wanted(pod_class, fleet).held:
                self._use(held, row, count, fleet)

    def removed(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        self.added(pod_class, row, -count, fleet)

    def came(self, row: int, fleet: Snapshot) -> None:
        name = fleet.rows.node(row).name
        node = self._node.get(name)
        if node is not None and self._is_current(fleet):
            for driver, limit in _limits(node):
                self.limits[driver][row] = limit
        for driver, _ in self._besides.get(name, ()):
            self.counts[driver][row] += 1

    def went(self, row: int, fleet: Snapshot) -> None:
        for driver, limits in self.limits.items():
            limits[row], self.counts[driver][row] = NO_LIMIT, 0

    def fingerprint(self, fleet: Snapshot) -> object:
        self.renew(fleet)
        names = sorted(fleet.rows.row_of.items())
        counts = [
            (driver, [(name, int(limits[row]), int(self.counts[driver][row])) for name, row in names])
            for driver, limits in self.limits.items()
        ]
        return counts, sorted((held, sorted(rows.items())) for held, rows in self._uses.items())

    def _is_current(self, fleet: Snapshot) -> bool:
        observed = fleet.observed
        self._stored.renew(fleet)
        return (
            self._version == self._stored.version
            and self._sighting == fleet.sightings
            and self._nodes is observed.csi_nodes
            and self._attachments is observed.attachments
        )

    def _use(self, held: Held, row: int, count: int, fleet: Snapshot) -> None:
        driver = held[0]
        if driver not in self.limits:
            return
        rows = self._uses.setdefault(held, {})
        before = rows.get(row, 0)
        now = rows[row] = before + count
        if held not in self._besides.get(fleet.rows.node(row).name, ()):
            self.counts[driver][row] += bool(now) - bool(before)
        if not now:
            del rows[row]
        if not rows:
            del self._uses[held]

    def _attached(self, fleet: Snapshot) -> dict[str, set[Held]]:
        found: dict[str, set[Held]] = defaultdict(set)
        for each in fleet.observed.attachments:
            spec = each.spec
            volume = self._stored.volume(spec.source.persistent_volume_name)
            if volume is not None and volume.spec.csi is not None and spec.attacher in self.limits:
                found[spec.node_name].add((spec.attacher, volume.spec.csi.volume_handle))
        for name, held in found.items():
            row = fleet.rows.row_of.get(name)
            for pod in fleet.pods_of_row(row) if row is not None else ():
                if pod.spec.volumes:
                    held.difference_update(self._stored.wanted(fleet.classes.of(pod), fleet).held)
        return dict(found)

    def _grow(self, capacity: int) -> None:
        self.limits = {driver: grown(array, capacity, NO_LIMIT) for driver, array in self.limits.items()}
        self.counts = {driver: grown(array, capacity) for driver, array in self.counts.items()}


def _limits(node: CsiNode) -> list[tuple[str, int]]:
    drivers = ((each.name, each.allocatable.count) for each in node.spec.drivers)
    return [(name, count) for name, count in drivers if count is not None]
