"""Whether a node bears a pod's volumes beside those that it has."""

from collections import defaultdict
from typing import ClassVar

from reconciler.fleet.obstacles import VolumeLimitReached
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.holding import Holding
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.fleet.storage.wanted import Held
from reconciler.model.obstacle import Obstacle


class VolumeLimits:
    """How many volumes a driver bears, less how many it has."""

    name: ClassVar[str] = "volume limits"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._stored = fleet.part(StorageIndex)
        self._holding = fleet.part(Holding)

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(self._by_driver(pod_class, fleet))

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        mask: Mask | None = None
        there: set[int] = set()
        for driver, held in self._by_driver(pod_class, fleet).items():
            bearable: Mask = self._holding.counts[driver] + len(held) <= self._holding.limits[driver]
            mask = bearable if mask is None else mask & bearable
            there.update(row for each in held for row in self._holding.rows_of(each))
        if mask is not None:
            # Where one of them is already, it is not one more.
            for row in there:
                mask[row] = self._over(pod_class, row, fleet) is None
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return self._over(pod_class, row, fleet) is None

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        driver = self._over(pod_class, row, fleet)
        if driver is None:
            raise LookupError("the node bears its volumes")
        limit, count = self._holding.limits[driver][row], self._holding.counts[driver][row]
        return VolumeLimitReached(int(limit), driver, int(count))

    def _over(self, pod_class: PodClass, row: int, fleet: Snapshot) -> str | None:
        """A driver that would have too many."""
        for driver, held in sorted(self._by_driver(pod_class, fleet).items()):
            more = sum(row not in self._holding.rows_of(each) for each in held)
            if more and self._holding.counts[driver][row] + more > self._holding.limits[driver][row]:
                return driver
        return None

    def _by_driver(self, pod_class: PodClass, fleet: Snapshot) -> dict[str, list[Held]]:
        """What such a pod wants of drivers that have a limit somewhere."""
        result: dict[str, list[Held]] = {}
        held = self._stored.wanted(pod_class, fleet).held
        if held:
            self._holding.renew(fleet)
            result = defaultdict(list)
            for each in held:
                if each[0] in self._holding.limits:
                    result[each[0]].append(each)
        return result
