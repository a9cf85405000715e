"""Owner of what unbound claims got in the what-if: a volume for each, or one that is made on the pod's node.

A claim of a pod that was seen on its node is left as it was seen: whoever put the pod there did not wait for it.
"""

from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.choosing import TO_BE_MADE, Stock, VolumeReservation, chosen
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.fleet.storage.wanted import Key, key_of
from reconciler.model.cluster.observed import Observed


class Promises:
    """A part of a what-if: `fleet.part(Promises)`. `version` changes with what is promised."""

    def __init__(self, fleet: Snapshot) -> None:
        self.version = 0
        self._stored = fleet.part(StorageIndex)
        self._observed: Observed | None = None
        self._made: dict[Key, VolumeReservation] = {}
        self._taken: dict[str, Key] = {}
        self._seen: set[tuple[Key, int]] = set()  # claims, and the rows where a pod was seen that uses them
        # What a claim had on a node before it was taken off: taking that back must give it the same again.
        self._before: dict[tuple[Key, str], str] = {}
        fleet.listen(self)

    def stock(self, fleet: Snapshot) -> Stock:
        """What is left to choose from."""
        self._stored.renew(fleet)
        if self._observed is not fleet.observed:
            self._begin(fleet)
        return Stock(self._stored, self._made, self._taken)

    def added(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        want = self._stored.wanted(pod_class, fleet)
        if not want.unbound or self._observed is not fleet.observed:
            return
        node = fleet.rows.node(row)
        found = chosen(want, node, Stock(self._stored, self._made, self._taken)) or {}
        for claim in want.unbound:
            key = key_of(claim)
            if (key, row) not in self._seen:
                self._promise(key, node.name, found.get(key, TO_BE_MADE), count)

    def removed(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        want = self._stored.wanted(pod_class, fleet)
        if not want.unbound or self._observed is not fleet.observed:
            return
        for claim in want.unbound:
            key = key_of(claim)
            if (key, row) not in self._seen:
                self._give_back(key, count)

    def came(self, row: int, fleet: Snapshot) -> None:
        pass

    def went(self, row: int, fleet: Snapshot) -> None:
        pass

    def fingerprint(self, fleet: Snapshot) -> object:
        self.stock(fleet)
        return [sorted(self._made.items()), sorted(self._taken.items())]

    def _promise(self, key: Key, node: str, volume: str, count: int) -> None:
        self.version += 1
        made = self._made.get(key)
        if made is not None:
            self._made[key] = VolumeReservation(made.node, made.volume, made.pods + count)
            return
        before = self._before.pop((key, node), None)
        if before is not None and before not in self._taken:
            volume = before
        self._made[key] = VolumeReservation(node, volume, count)
        if volume != TO_BE_MADE:
            self._taken[volume] = key

    def _give_back(self, key: Key, count: int) -> None:
        self.version += 1
        made = self._made.pop(key)
        if made.pods > count:
            self._made[key] = VolumeReservation(made.node, made.volume, made.pods - count)
            return
        self._before[key, made.node] = made.volume
        if made.volume != TO_BE_MADE:
            del self._taken[made.volume]

    def _begin(self, fleet: Snapshot) -> None:
        """From what was seen, and what is booked beside it."""
        self._observed = fleet.observed
        self._made, self._taken, self._seen, self._before = {}, {}, set(), {}
        self.version += 1
        for row in sorted(fleet.rows.row_of.values()):
            for pod in fleet.pods_of_row(row):
                if pod.spec.volumes:
                    want = self._stored.wanted(fleet.classes.of(pod), fleet)
                    self._seen |= {(key_of(claim), row) for claim in want.unbound}
        for row in sorted(fleet.rows.row_of.values()):
            for pod_class, count in sorted(fleet.booked_on(row).items(), key=lambda each: each[0].number):
                if pod_class.pod.spec.volumes:
                    self.added(pod_class, row, count, fleet)
