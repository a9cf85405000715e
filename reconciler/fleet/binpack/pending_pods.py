"""Pods that wait for a node, those together that need the same."""

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter

import numpy as np

from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Counts
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.fleet.topology.terms import PodAffinityTerms
from reconciler.model.cluster.pod import Pod

in_order = attrgetter("metadata.namespace", "metadata.name", "metadata.uid")
NO_TERMS = PodAffinityTerms()


class PendingPods:
    """The pods of one class, by namespace and name."""

    __slots__ = ("number", "pod_class", "pods", "terms")

    def __init__(self, number: int, pod_class: PodClass, pods: list[Pod]) -> None:
        self.number = number  # dense; the same whatever the order in which the pods were given
        self.pod_class = pod_class
        self.pods = pods
        self.terms = NO_TERMS  # one object for all that ask the same about other pods


def by_class(fleet: Snapshot, pods: Iterable[Pod]) -> list[PendingPods]:
    """The pods in classes, in the order of the first pod of each."""
    of = fleet.classes.of
    found: dict[PodClass, list[Pod]] = {}
    for pod in sorted(pods, key=in_order):
        pod_class = of(pod)
        together = found.get(pod_class)
        if together is None:
            found[pod_class] = [pod]
        else:
            together.append(pod)
    moved: dict[PodClass, list[Pod]] = {}
    for pod_class, together in found.items():
        others = moved.setdefault(pod_class.anew, together)
        if others is not together:
            moved[pod_class.anew] = sorted(others + together, key=in_order)
    waiting = [PendingPods(number, pod_class, together) for number, (pod_class, together) in enumerate(moved.items())]
    counting = fleet.part(Counting)
    counting.catch_up(fleet)
    same: dict[PodAffinityTerms, PodAffinityTerms] = {NO_TERMS: NO_TERMS}
    for each in waiting:
        terms = counting.terms(each.pod_class)
        if terms is not None:
            each.terms = same.setdefault(terms, terms)
    return waiting


def requests(waiting: list[PendingPods], columns: list[int]) -> Counts:
    """What each asks for, of the resources in `columns`."""
    place = np.zeros(max(columns, default=0) + 1, np.intp)
    place[columns] = range(len(columns))
    requested = [each.pod_class.request for each in waiting]
    mask = np.zeros((len(waiting), len(columns)), np.int64)
    flat = np.array(list(chain.from_iterable(chain.from_iterable(requested))), np.int64)
    rows = np.repeat(np.arange(len(waiting)), [len(each) for each in requested])
    mask[rows, place[flat[::2]]] = flat[1::2]
    return mask


def requested_columns(waiting: list[PendingPods]) -> list[int]:
    """The columns of the resources that anybody asks for."""
    kinds = {tuple([column for column, _ in each.pod_class.request]) for each in waiting}
    return sorted({column for kind in kinds for column in kind})
