"""Owner of the unclaimed volumes that would do for claims that are alike, and of how many of them each row reaches.

Nearly every volume names one label and the values that will do, so that the few that a node reaches are found by the
node's labels; the others are tried one by one.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, KeysView, Sequence

import msgspec
import numpy as np

from reconciler.fleet.rows import Counts, NodeRows
from reconciler.fleet.storage.places import plain_term, reached, reaches
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.volumes import PersistentVolume


class VolumeOffer:
    """Volumes, the smallest first."""

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self.volumes = volumes
        self._index = {each.metadata.name: number for number, each in enumerate(volumes)}
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._others: list[int] = []
        self._version = -1, -1  # of the rows, and their capacity
        self._counts: Counts = np.zeros(0, np.int64)
        self._left_out: set[str] = set()  # volumes that are not counted, since they are taken
        for number, volume in enumerate(volumes):
            plain = plain_term(volume)
            if plain is None:
                self._others.append(number)
            else:
                by_value = self._by_label.setdefault(plain[0], defaultdict(list))
                for value in sorted(set(plain[1])):
                    by_value[value].append(number)

    def smallest(self, node: Node, taken: Container[str]) -> PersistentVolume | None:
        """The smallest that the node reaches and that is not taken."""
        found = len(self.volumes)
        for numbers in self._near(node):
            for number in numbers:
                if number >= found:
                    break
                if self.volumes[number].metadata.name not in taken and reaches(node, self.volumes[number]):
                    found = number
        return self.volumes[found] if found < len(self.volumes) else None

    def counts(self, rows: NodeRows, taken: KeysView[str]) -> Counts:
        """How many that are not taken each row reaches. Not to be changed."""
        if self._version != (rows.version, rows.capacity):
            self._version = rows.version, rows.capacity
            self._counts, self._left_out = self._counted(rows), set()
        for name in sorted((taken & self._index.keys()) ^ self._left_out):
            mask = reached(self.volumes[self._index[name]], rows)
            change = 1 if name in self._left_out else -1
            self._counts[slice(None) if mask is None else mask] += change
            self._left_out ^= {name}
        return self._counts

    def _near(self, node: Node) -> Iterator[list[int]]:
        yield self._others
        for key, by_value in self._by_label.items():
            value = node.metadata.labels.get(key)
            if value in by_value:
                yield by_value[value]

    def _counted(self, rows: NodeRows) -> Counts:
        result: Counts = np.zeros(rows.capacity, np.int64)
        for key, by_value in self._by_label.items():
            column = rows.column(key)  # first: it gives numbers to the values that nodes have
            many = [len(by_value.get(value, ())) for value in rows.values(key)]
            of_value = np.array([*many, 0], np.int64)  # absent is -1, the last
            result += of_value[column]
        for number in self._others:
            mask = reached(self.volumes[number], rows)
            result[slice(None) if mask is None else mask] += 1
        return result


class Alike(msgspec.Struct, frozen=True):
    """What of a claim decides which volumes would do."""

    storage_class: str
    size: int
    volume_mode: str
    attributes_class: str
    access_modes: frozenset[str]
    selector: bytes
