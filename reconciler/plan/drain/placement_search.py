"""Repeated searches with different starts and directions, for plans without hints, as after a restart.

With hints, a search finds a tight packing again. Without hints, the first search may leave a candidate without
destinations, and the candidate would lose its timer although there is room for all. So the search is repeated: with
such candidates first, from other start nodes, in both directions, and with all pods from one start node, until no
candidate is lost, no variant is left, or all steps of the plan are used up. A result is better if it keeps more
candidates, and all kept candidates that have hints. A result that strands a pod is never better. The best result
becomes the hints of the next plan, which then needs only one search.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import msgspec
from msgspec.structs import replace

from reconciler.fleet.filters.claims import GpuClaims
from reconciler.fleet.first_fit import Search
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.questions import ScaleDownSimulation, place
from reconciler.model.plan.decision import Reason, Ref, pod_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import FailedPlacement
from reconciler.plan.draft import Draft
from reconciler.plan.drain.blockers import blocker
from reconciler.plan.drain.candidates import EligibilityContext
from reconciler.plan.drain.codes.blockers import (
    GangWithoutPlace,
    IsDestination,
    NotEvaluated,
    NotTried,
    PodBlocker,
    PodWithoutPlace,
)
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gang_placement import Crewing, GangNodes, Members, obstacles
from reconciler.plan.drain.node_eligibility import eligible
from reconciler.plan.drain.placement import Rehomed, Rehoming, steps_of

_STARTS, _FEW = 8, 100  # number of start nodes, if at most that many nodes are tried
_AHEAD = slice(None), slice(None, None, -1), slice(0)  # lost candidates that come first: all, all in reverse, none

# Reasons that another search may avoid.
_BY_WAY = frozenset({PodWithoutPlace, GangWithoutPlace, IsDestination})


class Trial(msgspec.Struct, frozen=True):
    """One search and its result."""

    order: Sequence[DrainNode]
    way: Search
    rehomed: Rehomed


def rehome(context: DrainContext, order: Sequence[DrainNode], members: Members) -> Trial:
    """Best search. All changes of the fleet are undone."""
    steps_left = steps_of(context)
    best = _searched(context, members, order, Search(backwards=True, budget=steps_left))
    lost = _lost(context, best)
    if not lost and best.rehomed.homeless is None:
        return best
    steps_left -= best.rehomed.steps
    done = {_title(best.order, best.way)}
    for way, part in product(_ways(order), _AHEAD):
        if best.rehomed.left_out or steps_left <= 0 or not (lost or best.rehomed.homeless is not None):
            break
        changed = _with_ahead(order, lost[part])
        if _title(changed, way) not in done:
            done.add(_title(changed, way))
            trial = _searched(context, members, changed, replace(way, budget=steps_left))
            steps_left -= trial.rehomed.steps
            if _is_better(context, trial, best):
                best, lost = trial, _lost(context, trial)
    return best


def _with_ahead(order: Sequence[DrainNode], ahead: Sequence[DrainNode]) -> list[DrainNode]:
    names = {each.name for each in ahead}
    return [*ahead, *(each for each in order if each.name not in names)]


def _ways(order: Sequence[DrainNode]) -> Iterator[Search]:
    starts = "", *(each.name for each in order[: _STARTS if len(order) <= _FEW else 0])
    for anew, start, backwards in product((False, True), starts, (True, False)):
        yield Search(start, backwards, anew=anew)


def _title(order: Sequence[DrainNode], way: Search) -> tuple[object, ...]:
    return way.pointer, way.backwards, way.anew, *(each.name for each in order)


def _searched(context: DrainContext, members: Members, order: Sequence[DrainNode], way: Search) -> Trial:
    snapshot = context.fleet.snapshot
    with snapshot.fork(), snapshot.part(GpuClaims).judged(context.claims.requests):
        return Trial(order, way, Rehoming(context, members, way).run(order))


def _lost(context: DrainContext, trial: Trial) -> list[DrainNode]:
    """Candidates without hints whose pods have no destination, or that must take pods. Candidates that wait for a pod
    to complete are left out: a destination is of no use to them now.
    """
    hints, refused = context.inputs.hints, trial.rehomed.refused
    timed = (each for each in trial.order if each.name in refused and each.candidate_since is not None)
    timed = (each for each in timed if each.name not in context.completing)
    unaided = (each for each in timed if each.name not in hints.destinations and each.name not in hints.tried)
    return [each for each in unaided if type(refused[each.name].facts) in _BY_WAY]


def _is_better(context: DrainContext, trial: Trial, best: Trial) -> bool:
    if trial.rehomed.homeless is not None or trial.rehomed.left_out:
        return False
    if best.rehomed.homeless is not None:
        return True
    hints = context.inputs.hints.destinations
    timed = {each.name for each in trial.order if each.candidate_since is not None}
    kept, before = timed & trial.rehomed.together.keys(), timed & best.rehomed.together.keys()
    return len(kept) > len(before) and all(name in kept for name in before if name in hints)


# --- Nodes that failed placement: when a node was tried last, since when placement fails, and the last reason.
#
# A plan may not have time for all nodes, and then reports show earlier results. These results are part of the hints,
# which may be lost at any time, because no decision depends on them; the memory would have to be written with each
# plan. Results of nodes that may not be tried any more, or that found destinations, are dropped.

# Reasons of nodes that were not tried: earlier results stay.
_UNTRIED = frozenset({NotEvaluated, NotTried})


def tried(context: DrainContext, refused: Mapping[str, Reason], rehomed: Rehomed) -> dict[str, FailedPlacement]:
    """Failed placements by node name. `refused`: why evaluated nodes are no candidates."""
    return dict(_tried(context, refused, rehomed))


def _tried(
    context: DrainContext, refused: Mapping[str, Reason], rehomed: Rehomed
) -> Iterator[tuple[str, FailedPlacement]]:
    for drain_node in context.drain_nodes:
        if drain_node.name in rehomed.together:
            continue
        reason = rehomed.refused.get(drain_node.name)
        known = _known(context, drain_node)
        if reason is not None:
            uid, since = drain_node.node.metadata.uid, context.now if known is None else known.since
            yield drain_node.name, FailedPlacement(uid, since, context.now, reason)
        elif known is not None and (drain_node.name not in refused or type(refused[drain_node.name].facts) in _UNTRIED):
            yield drain_node.name, known


def _known(context: DrainContext, drain_node: DrainNode) -> FailedPlacement | None:
    failed_placement = context.inputs.hints.tried.get(drain_node.name)
    return (
        failed_placement
        if failed_placement is not None and failed_placement.uid == drain_node.node.metadata.uid
        else None
    )


# --- All blockers of one node, pod by pod. A plan reports only the first; `explain` shows the others.
#
# Who gets the remaining room and PodDisruptionBudgets depends on the nodes tried before. So the search is repeated as
# in the plan, and each pod of the node is checked when the node's turn comes. A node that is not tried is checked at
# the end, when other nodes have taken what they need.


def keepers(inputs: Inputs, draft: Draft, node: str) -> list[Reason]:
    """Why each pod of the node stays, by namespace and name; empty if no pod keeps the node, or no policy names its
    pool.
    """
    context = DrainContext(inputs, draft)
    drain_node = context.by_name.get(node)
    if drain_node is None:
        return []
    members, snapshot = Members(context), context.fleet.snapshot
    trial = rehome(context, eligible(EligibilityContext(context)).order, members)
    with snapshot.fork(), snapshot.part(GpuClaims).judged(context.claims.requests):
        return _Asking(context, members, trial.way, drain_node).hold_reasons(trial.order)


def pod_of(reason: Reason) -> Ref | None:
    """The pod in a blocker reason; None for other reasons."""
    return reason.facts.pod if isinstance(reason.facts, PodBlocker) else None


class _Asking(Rehoming):
    """A search that collects all blockers of one node."""

    def __init__(self, context: DrainContext, members: Members, way: Search, drain_node: DrainNode) -> None:
        super().__init__(context, members, way)
        self._asked_about = drain_node
        self._reasons: list[Reason] | None = None

    def hold_reasons(self, order: Sequence[DrainNode]) -> list[Reason]:
        self.run(order)
        return self._blockers() if self._reasons is None else self._reasons

    def _refuse_blocked(self, order: Iterable[DrainNode]) -> None:
        """Leave the examined node out, so that it is checked in its turn."""
        super()._refuse_blocked(each for each in order if each is not self._asked_about)

    def _try_one(self, drain_node: DrainNode, emptying: ScaleDownSimulation) -> bool:
        if drain_node is self._asked_about:
            kept = self._blockers()
            known = set(map(pod_of, kept))
            homeless = self._homeless(emptying.walk.pointer)
            self._reasons = [*kept, *(each for each in homeless if pod_of(each) not in known)]
        return super()._try_one(drain_node, emptying)

    def _try_crew(self, crew: GangNodes, crewing: Crewing, emptying: ScaleDownSimulation) -> bool:
        if any(each.name == self._asked_about.name for each in crew.nodes):
            self._reasons = self._blockers()
        return super()._try_crew(crew, crewing, emptying)

    def _blockers(self) -> list[Reason]:
        """Blockers of the pods that hold whatever room other nodes have. Each gang is checked as a whole."""
        context, drain_node, gangs = self._context, self._asked_about, self._members
        reasons: list[Reason] = []
        blockers: set[tuple[str, str]] = set()
        for pod in self._movings[drain_node.name].pods:
            gang = context.draft.gangs.of(pod)
            if gang is None or gang in gangs.on_their_way:
                reasons += filter(None, [blocker(context, self._remaining, drain_node, pod)])
            elif gang not in blockers:
                blockers.add(gang)
                reasons += [
                    each.to(drain_node, pod) for each in obstacles(context, gangs, gang, self._remaining.copy())
                ]
        return list(dict.fromkeys(reasons))

    def _homeless(self, pointer: str) -> Iterator[Reason]:
        """Pods without room beside the other pods; of equal pods the first by name."""
        snapshot, drain_node = self._snapshot, self._asked_about
        row, of = snapshot.rows.row_of[drain_node.name], snapshot.classes.of
        if row in self._takers:
            return
        pods = self._movings[drain_node.name].pods
        with snapshot.fork():
            snapshot.vacate(row)
            hints = self._hints.of(pods, drain_node.name)
            search = replace(self._way, pointer=pointer, allowed=self._allowed, hints=hints, budget=None)
            placement = place(snapshot, sorted(pods, key=lambda pod: of(pod).anew.rank), search)
            refused_nodes = self._unplaced_reasons(placement.unplaced, self._allowed, drain_node.name)
        lost = {of(pod).anew: refused_nodes[pod.metadata.uid] for pod in pods if pod.metadata.uid in refused_nodes}
        left = Counter[PodClass](of(pod).anew for pod in pods if pod.metadata.uid in refused_nodes)
        for pod in pods:
            alike = of(pod).anew
            if left[alike]:
                left[alike] -= 1
                yield drain_node.reason(PodWithoutPlace(pod=pod_ref(pod), node=drain_node.name, ruled_out=lost[alike]))
