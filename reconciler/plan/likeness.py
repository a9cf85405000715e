"""Which nodes are alike in all that decides what fits on them and what keeps them, whatever their names.

Nodes are compared where the order of the search must not depend on names, uids or times: labels but those that name the
node, taints, what the node has, and the classes of the pods on it. What is alike in that is told apart by nothing but
names. Fuller nodes come later in their order: places are looked for from the end, so that gaps are closed before others
are begun.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Places
from reconciler.fleet.snapshot.row_indexes import PerRow
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.plan.nodes.eviction import is_healthy

_CPU = 0  # the first column of every fleet
_TIMED = frozenset({names.DRAIN_CANDIDATE, names.DRAINING, names.DELETION_TIME})


# How much of it is asked for, in percent; what the node says of itself; and the classes of the pods on it.
Likeness = tuple[int, str, tuple[tuple[str, bool, int], ...]]


class Likenesses(PerRow[Likeness]):
    """Owner of the likeness of each row, as the cluster was seen; within a fork too."""

    def find(self, row: int) -> Likeness:
        there = list(zip(self.fleet.pods_of_row(row), self.fleet.classes_of_row(row), strict=True))
        gpus = sum([self.fleet.classes.gpus_of(pod_class, pod) for pod, pod_class in there])
        of_class = Counter([(pod_class, is_healthy(pod)) for pod, pod_class in there])
        named = Counter[tuple[str, bool]]()
        for (pod_class, healthy), count in of_class.items():
            named[_name_of(pod_class), healthy] += count
        pods = tuple([(*key, count) for key, count in sorted(named.items())])
        return self._percent(row, gpus, of_class), "\0".join(_of_node(self.fleet.rows.node(row))), pods

    def _percent(self, row: int, used: int, of_class: Mapping[tuple[PodClass, bool], int]) -> int:
        """Of its GPUs; of its cpu where it has none."""
        gpus = self.fleet.rows.node(row).gpus
        if gpus:
            return 100 * used // gpus
        cpu = int(self.fleet.stock.allocatable[row, _CPU])
        held = sum(dict(each.held).get(_CPU, 0) * count for (each, _), count in of_class.items())
        return 100 * held // cpu if cpu else 100


def fullest_first(snapshot: Snapshot) -> Callable[[], Places]:
    """For a Search: all rows as they are when a place is looked for first. Ready nodes come before others, then
    those whose annotations keep them from removal, and then the fullest."""

    @cache
    def order() -> Places:
        rows, alike = snapshot.rows, snapshot.part(Likenesses)
        found = sorted(rows.order.tolist(), key=lambda row: (*_stays(rows.node(row)), alike.of(row)), reverse=True)
        return np.array(found, np.intp)

    return order


def _stays(node: Node) -> tuple[bool, bool]:
    annotations = node.metadata.annotations
    return node.is_ready, bool(
        annotations.scale_down_disabled == "true" or annotations.do_not_disrupt or annotations.frozen_until
    )


def _name_of(pod_class: PodClass) -> str:
    """Of what goes with its node, what it asks for: the rest of its class may name the node."""
    return f"node {pod_class.held}" if pod_class.goes_with_its_node else pod_class.key


def _of_node(node: Node) -> Iterator[str]:
    labels, name = node.metadata.labels, node.name
    yield from (f"{key}={labels[key]}" for key in sorted(labels) if labels[key] != name and key != names.HOSTNAME)
    taints = (each for each in node.spec.taints if each.key not in _TIMED)
    yield from sorted(f"{each.key}={each.value}:{each.effect}" for each in taints)
    yield from (f"{key}:{amount}" for key, amount in sorted(node.status.allocatable.items()))
