"""Owner of how much a what-if may remember of pods and nodes that are gone, in bytes.

Classes of pods and sets of taints are kept for as long as the what-if lives, so that a number always means the same.
Where each pod or node brings its own, nearly all of them are soon nobody's: a smart pod names the nodes that it is not
for, thousands where there are thousands, and a mark for deletion has the hour of its node. So they are weighed, not
counted.
"""

from collections.abc import Callable, Iterable

import numpy as np

from reconciler.fleet.classes import Classes
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import NodeRows

_LEAST_BYTES, _LEAST_BYTES_A_ROW = 262_144, 1_024  # that nobody minds
_TIMES = 3  # as much as what is there needs
_TAINTS_BYTES = 512  # that a set of taints takes, about
_PLACE_BYTES = 4  # a row, of the column of a label that only one class asks about


class Crowding:
    """Asked often; it looks what is there only when as much has come as may."""

    def __init__(self, classes: Classes, rows: NodeRows) -> None:
        self._classes = classes
        self._rows = rows
        self._most = self._least()

    def is_over(self, in_use: Callable[[], Iterable[PodClass]]) -> bool:
        """Whether most of what is remembered is of nobody; `in_use`: the classes of pods that are there."""
        classes = self._classes
        taken = self._bytes(classes.written_bytes, len(classes.all), len(self._rows.taint_groups))
        if taken <= self._most:
            return False
        self._most = max(self._least(), _TIMES * self._needed(in_use()))
        return taken > self._most

    def _needed(self, in_use: Iterable[PodClass]) -> int:
        pod_classes = set(in_use)
        pod_classes |= {each.anew for each in pod_classes}
        borne = np.unique(self._rows.taint_group[self._rows.alive])
        return self._bytes(sum(len(each.text) for each in pod_classes), len(pod_classes), len(borne))

    def _bytes(self, written_bytes: int, classes: int, taints: int) -> int:
        return written_bytes + classes * _PLACE_BYTES * self._rows.capacity + taints * _TAINTS_BYTES

    def _least(self) -> int:
        return _LEAST_BYTES + _LEAST_BYTES_A_ROW * self._rows.capacity
