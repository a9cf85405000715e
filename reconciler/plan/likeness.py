"""Comparison of nodes by everything that decides what fits on them and what keeps them, but not by name.

The order of a search must not depend on names, uids or times. So nodes are compared by their labels (except labels
that contain the node's name), taints, allocatable resources, and the classes of their pods. Only names distinguish
nodes that are equal in all of these. Fuller nodes come later in the order: a search starts from the end, so partly
used nodes are filled before others.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Places
from reconciler.fleet.snapshot.row_indexes import PerRow
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node

_CPU = 0  # index of cpu: the first resource column of every fleet
_TIMED = frozenset({names.DRAIN_CANDIDATE, names.DRAINING, names.DELETION_TIME})


# Requested percentage, attributes of the node, and the classes of the pods on the node.
Likeness = tuple[int, str, tuple[tuple[str, bool, int], ...]]


class Likenesses(PerRow[Likeness]):
    """Cache of the likeness of each row, from the observed cluster; also used within forks."""

    def find(self, row: int) -> Likeness:
        profiles, gpus_of = self.fleet.observed_on[row].counts, self.fleet.classes.gpus_of
        gpus = sum([gpus_of(profile) * count for profile, count in profiles.items()])
        named = Counter[tuple[str, bool]]()
        for profile, count in profiles.items():
            named[_name_of(profile.pod_class), profile.is_ready] += count
        pods = tuple([(*key, count) for key, count in sorted(named.items())])
        return self._percent(row, gpus), "\0".join(_of_node(self.fleet.rows.node(row))), pods

    def _percent(self, row: int, used: int) -> int:
        """Requested percentage of the node's GPUs, or of its cpu if the node has no GPUs."""
        gpus = self.fleet.rows.node(row).gpus
        if gpus:
            return 100 * used // gpus
        cpu = int(self.fleet.stock.allocatable[row, _CPU])
        profiles = self.fleet.observed_on[row].counts.items()
        held = sum([dict(each.pod_class.held).get(_CPU, 0) * count for each, count in profiles])
        return 100 * held // cpu if cpu else 100


def fullest_first(snapshot: Snapshot) -> Callable[[], Places]:
    """For a Search: returns all rows at the time of the first search. Ready nodes come before others, then nodes whose
    annotations prevent removal, then the fullest nodes.
    """

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
    """Key of a pod class. For pods that go with their node the key is the request only: the rest of such a class may
    contain the node's name.
    """
    return f"node {pod_class.held}" if pod_class.goes_with_its_node else pod_class.key


def _of_node(node: Node) -> Iterator[str]:
    labels, name = node.metadata.labels, node.name
    yield from (f"{key}={labels[key]}" for key in sorted(labels) if labels[key] != name and key != names.HOSTNAME)
    taints = (each for each in node.spec.taints if each.key not in _TIMED)
    yield from sorted(f"{each.key}={each.value}:{each.effect}" for each in taints)
    yield from (f"{key}:{amount}" for key, amount in sorted(node.status.allocatable.items()))
