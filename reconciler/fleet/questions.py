"""What-if queries: whether a pod fits on a node, where pods can be placed, and which nodes can be emptied.

A bound pod is evaluated as its replacement.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.claims import ResourceClaimFilter
from reconciler.fleet.filters.nominated import Nominated
from reconciler.fleet.first_fit import FirstFitCursor, Search, StepBudget
from reconciler.fleet.obstacles import HoldsDevices, NodeAbsent
from reconciler.fleet.pod_classes import PodClass, Rank
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Obstacle

_UNTOLD = Rejections()


class Placement(msgspec.Struct):
    """Destinations of pods, and pods that fit nowhere."""

    pointer: str = ""  # start node of the next search
    steps: int = 0
    destinations: dict[str, str] = {}  # uid of a pod -> node name
    unplaced: dict[str, Rejections] = {}  # uid of a pod -> refusals by predicate
    not_evaluated: tuple[str, ...] = ()  # uids of pods without a result, since the budget was exceeded


def fits(fleet: Snapshot, pod: Pod, node_name: str) -> tuple[Obstacle, ...]:
    """All obstacles for the pod on the node, in the order of predicates; empty if it fits."""
    row = fleet.rows.row_of.get(node_name)
    if row is None or not fleet.rows.alive[row]:
        return (NodeAbsent(node_name),)
    astray = bool(pod.node) and pod.node not in fleet.rows.row_of
    pod_class = fleet.classes.pinned(pod) if astray else fleet.classes.class_as_placed(pod)
    with fleet.part(Nominated).asking(pod):
        return fleet.part(FilterChain).reasons(pod_class.anew, row)


def place(fleet: Snapshot, pods: Sequence[Pod], search: Search) -> Placement:
    """Books each pod on the first node that accepts it, in the given order; use a fork for a trial."""
    walk = FirstFitCursor(fleet, search)
    placement = Placement()
    placing = _Placing(fleet, search, walk, placement)
    for pod_class, run in _runs(fleet, pods, search):
        placing.run(pod_class, run)
    placement.pointer, placement.steps = walk.pointer, walk.meter.steps
    return placement


class _Placing:
    """State of one call of `place`."""

    def __init__(self, fleet: Snapshot, search: Search, walk: FirstFitCursor, placement: Placement) -> None:
        self._fleet = fleet
        self._search = search
        self._walk = walk
        self._placement = placement
        self._full: dict[PodClass, Rejections] = {}  # classes for which placing other pods frees no room

    def run(self, pod_class: PodClass, pods: list[Pod]) -> None:
        """Places pods of one class; several only if they are interchangeable."""
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
    """Consecutive pods of one class; a pod with a hint or nomination is separate."""
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


# --- Nodes that can be removed together: one after another, if all pods fit elsewhere after the previous moves.
#
# Pods may move to any allowed node that is not removed itself. A node that received pods is not emptied: no pod moves
# twice. Pods that need no destination: DaemonSet and static pods, pods that are being deleted, and pods whose
# completion the node waits for.

# Class key -> node name -> number of pods of the class that went there last time.
Hints = Mapping[str, Mapping[str, int]]
_NOWHERE: Mapping[str, int] = {}


class Move(msgspec.Struct, frozen=True, gc=False):
    """Pods of one class, and their destination row."""

    pod_class: PodClass
    to: int
    count: int


class ScaleDownOutcome(msgspec.Struct):
    """The result for each row."""

    pointer: str = ""
    steps: int = 0
    together: dict[int, tuple[Move, ...]] = {}  # removable rows, in order, with the moves of their pods
    stuck: dict[int, PodClass] = {}  # rows whose pods fit nowhere else
    taking: tuple[int, ...] = ()  # rows that received pods before their turn
    not_evaluated: tuple[int, ...] = ()  # rows without a result, since the budget was exceeded


def empty(fleet: Snapshot, order: Sequence[int], search: Search) -> ScaleDownOutcome:
    """Empties rows in order; removable rows are gone from the fleet afterwards. Requires an open fork."""
    emptying = ScaleDownSimulation(fleet, search)
    meter = emptying.meter
    scale_down_outcome = ScaleDownOutcome()
    took: set[int] = set()
    for place, row in enumerate(order):
        if row in took:
            scale_down_outcome.taking += (row,)
            continue
        found = emptying.one(row, {})
        if meter.spent:
            scale_down_outcome.not_evaluated = tuple(order[place:])
            break
        if isinstance(found, PodClass):
            scale_down_outcome.stuck[row] = found
        else:
            scale_down_outcome.together[row] = found
            took.update([each.to for each in found])
    scale_down_outcome.pointer, scale_down_outcome.steps = emptying.walk.pointer, meter.steps
    return scale_down_outcome


class ScaleDownSimulation:
    """Empties one row after another; the caller must not pass a row that received pods.

    Pods go to `preferred` rows first, which stay anyway: a pod elsewhere keeps a node that could have been removed.
    Both masks may change between two rows.
    """

    def __init__(self, fleet: Snapshot, search: Search, preferred: Mask | None = None) -> None:
        self.meter = StepBudget(search.budget)
        self.walk = FirstFitCursor(fleet, search, self.meter)
        self._preferred = np.zeros_like(fleet.rows.alive) if preferred is None else preferred
        self._first = (
            None if preferred is None else FirstFitCursor(fleet, replace(search, allowed=preferred), self.meter)
        )
        self._fleet = fleet

    def one(self, row: int, hints: Hints) -> tuple[Move, ...] | PodClass:
        """The moves that empty a row, or the class that fits nowhere; in that case nothing has changed."""
        fleet = self._fleet
        booked = fleet.booked_on(row)
        moving = [(each.anew, count) for each, count in booked.items() if each.needs_another_place]
        moving.sort(key=_rank)
        marks = [(walk, walk.mark()) for walk in (self._first, self.walk) if walk is not None]
        opened: list[int] = []
        moves: list[Move] = []
        with fleet.fork() as fork:
            fleet.vacate(row)
            for pod_class, count in moving:
                left = self._put_as_before(pod_class, count, hints, moves) if hints else count
                if left and self._put(pod_class, left, moves, opened):
                    for walk, mark in marks:
                        walk.back(mark)
                    self._preferred[opened] = False
                    return pod_class
            fork.commit()
        return tuple(moves)

    def _put(self, pod_class: PodClass, count: int, moves: list[Move], opened: list[int]) -> int:
        """The number of pods left over. A further node that receives pods stays from then on."""
        for to, put in self._first.put(pod_class, count) if self._first is not None else ():
            moves.append(Move(pod_class, to, put))
            count -= put
        for to, put in self.walk.put(pod_class, count) if count else ():
            moves.append(Move(pod_class, to, put))
            count -= put
            if self._first is not None and not self._preferred[to]:
                self._preferred[to] = True
                opened.append(to)
                self._first.back(self.walk.mark())
        return count

    def _put_as_before(self, pod_class: PodClass, count: int, hints: Hints, moves: list[Move]) -> int:
        """Tries the previous destinations; returns the number of pods left over."""
        for name, many in hints.get(pod_class.key, _NOWHERE).items():
            to = self._fleet.rows.row_of.get(name)
            if to is not None and (put := self.walk.put_on(pod_class, to, min(many, count))):
                moves.append(Move(pod_class, to, put))
                count -= put
        return count


def _rank(moving: tuple[PodClass, int]) -> Rank:
    return moving[0].rank


# --- Pods that are never moved, because the simulation cannot tell where they fit.


def unmodelled(pod_class: PodClass, fleet: Snapshot) -> Obstacle | None:
    """Why the placement of such a pod cannot be simulated; None if it can. Such a pod fits nowhere."""
    return (
        pod_class.unmodelled
        or fleet.part(StorageIndex).wanted(pod_class, fleet).unmodelled
        or fleet.part(ResourceClaimFilter).claimed(pod_class, fleet).unmodelled
    )


def why_it_stays(pod_class: PodClass, fleet: Snapshot) -> Obstacle | None:
    """Why such a pod must not be moved; None if it may. A pod that releases devices may find no others."""
    claimed = fleet.part(ResourceClaimFilter).claimed(pod_class, fleet)
    held = HoldsDevices(claimed.met[0][0]) if claimed.met else None
    return unmodelled(pod_class, fleet) or held
