"""What can be asked of a fleet: whether a pod would fit on a node, and where these pods go.

A pod that is somewhere already is asked about as the one that would take its place.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.nominated import Nominated
from reconciler.fleet.first_fit import FirstFitCursor, Search
from reconciler.fleet.obstacles import NodeAbsent
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.obstacle import Obstacle

_UNTOLD = Rejections()


class Placement(msgspec.Struct):
    """Where pods went, and which found no place."""

    pointer: str = ""  # the node where the next search should begin
    steps: int = 0
    destinations: dict[str, str] = {}  # uid of a pod -> name of its node
    unplaced: dict[str, Rejections] = {}  # uid of a pod -> what ruled out the nodes
    not_evaluated: tuple[str, ...] = ()  # uids of pods of which nothing is known, since the budget was spent


def fits(fleet: Snapshot, pod: Pod, node_name: str) -> tuple[Obstacle, ...]:
    """Every reason why the pod can't be on the node, in the order of predicates; nothing when it can."""
    row = fleet.rows.row_of.get(node_name)
    if row is None or not fleet.rows.alive[row]:
        return (NodeAbsent(node_name),)
    astray = bool(pod.node) and pod.node not in fleet.rows.row_of
    pod_class = fleet.classes.pinned(pod) if astray else fleet.classes.class_as_placed(pod)
    with fleet.part(Nominated).asking(pod):
        return fleet.part(FilterChain).reasons(pod_class.anew, row)


def place(fleet: Snapshot, pods: Sequence[Pod], search: Search) -> Placement:
    """Books each pod on the first node that takes it, in the order given; within a fork, if it is only to be tried."""
    walk = FirstFitCursor(fleet, search)
    placement = Placement()
    placing = _Placing(fleet, search, walk, placement)
    for pod_class, run in _runs(fleet, pods, search):
        placing.run(pod_class, run)
    placement.pointer, placement.steps = walk.pointer, walk.meter.steps
    return placement


class _Placing:
    """One call of `place`."""

    def __init__(self, fleet: Snapshot, search: Search, walk: FirstFitCursor, placement: Placement) -> None:
        self._fleet = fleet
        self._search = search
        self._walk = walk
        self._placement = placement
        self._full: dict[PodClass, Rejections] = {}  # classes for which no room comes to be by placing others

    def run(self, pod_class: PodClass, pods: list[Pod]) -> None:
        """Pods of one class; more than one only if nothing sets them apart."""
        if pod_class in self._full:
            self._placement.unplaced |= {pod.metadata.uid: self._full[pod_class] for pod in pods}
            return
        nominated = self._fleet.part(Nominated)
        with nominated.asking(pods[0]):
            put = self._put(pod_class, pods)
            names = [self._fleet.rows.node(row).name for row, count in put for _ in range(count)]
            self._placement.destinations |= {pod.metadata.uid: name for pod, name in zip(pods, names, strict=False)}
            left = [pod.metadata.uid for pod in pods[len(names) :]]
            if left:
                self._leave(pod_class, left)
        for pod in pods[: len(names)]:
            nominated.use_up(pod, self._fleet)

    def _put(self, pod_class: PodClass, pods: list[Pod]) -> list[tuple[int, int]]:
        hint = self._fleet.rows.row_of.get(self._search.hints.get(pods[0].metadata.uid, ""))
        if hint is not None and self._walk.put_on(pod_class, hint):
            return [(hint, 1)]
        return self._walk.put(pod_class, len(pods))

    def _leave(self, pod_class: PodClass, left: list[str]) -> None:
        if self._walk.meter.spent:
            self._placement.not_evaluated += tuple(left)
            return
        judging = self._fleet.part(FilterChain)
        why = judging.counted(pod_class, self._search.allowed) if self._search.tells_why else _UNTOLD
        if judging.goes_in_bulk(judging.active_predicates(pod_class)):
            self._full[pod_class] = why
        self._placement.unplaced |= dict.fromkeys(left, why)


def _runs(fleet: Snapshot, pods: Sequence[Pod], search: Search) -> Iterator[tuple[PodClass, list[Pod]]]:
    """Pods of one class that follow each other; one with a hint or a nomination by itself."""
    run: list[Pod] = []
    of: PodClass | None = None
    for pod in pods:
        pod_class = fleet.classes.of(pod).anew
        alone = bool(pod.status.nominated_node_name) or pod.metadata.uid in search.hints
        if of is not None and (alone or pod_class is not of):
            yield of, run
            of, run = None, []
        run.append(pod)
        of = pod_class
        if alone:
            yield of, run
            of, run = None, []
    if of is not None:
        yield of, run
