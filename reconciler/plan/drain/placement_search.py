"""The search for places, in several ways where it is not known where pods went the last time, as after a restart.

A packing that is full to the brim is found again by hints. Without them the first one may leave a candidate without a
place, which would lose its timer though there is room for all. So the search is done again: with those ahead that lost
theirs, from other nodes on, from either end, and with all pods from one node on, until none is lost, or nothing is left
to try, or all steps are taken that a plan has. A way is taken if it keeps more candidates, and all of those of which
hints are there; one that leaves a pod without a place that is on its way already is never taken for another. What comes
of it are the hints of the next plan, which needs no more than one search.
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
from reconciler.plan.drain.candidates import EligibilityContext, completing
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

_STARTS, _FEW = 8, 100  # from so many nodes on, where no more than a few are tried
_AHEAD = slice(None), slice(None, None, -1), slice(0)  # of those that lost theirs: all, the last one first, none

# What another way may put right.
_BY_WAY = frozenset({PodWithoutPlace, GangWithoutPlace, IsDestination})


class Trial(msgspec.Struct, frozen=True):
    """One search, and what came of it."""

    order: Sequence[DrainNode]
    way: Search
    rehomed: Rehomed


def rehome(context: DrainContext, order: Sequence[DrainNode], members: Members) -> Trial:
    """The best that is found. What is changed in the fleet for it is taken back."""
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
    with snapshot.fork(), snapshot.part(GpuClaims).judged(context.claims.pools, context.fleet.lent.keys()):
        return Trial(order, way, Rehoming(context, members, way).run(order))


def _lost(context: DrainContext, trial: Trial) -> list[DrainNode]:
    """Candidates of which nothing was found before, and for whose pods there is no place, or that must take others.
    Those that wait for a pod to complete gain nothing by a place now."""
    hints, refused = context.inputs.hints, trial.rehomed.refused
    timed = (each for each in trial.order if each.name in refused and each.candidate_since is not None)
    timed = (each for each in timed if not completing(context, each.name))
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


# --- Nodes that were tried in vain: when it was tried last, since when it has failed, and why the last time.
#
# There is not time for all nodes in each plan, and then what was found before is what there is to tell. It is kept
# among the hints, which may be lost at any time, since nothing is decided by it: in the memory it would have to be
# written anew with each plan. A node that may be tried no more, or for which places were found, is forgotten.

# Nobody looked: what was found before stands.
_UNTRIED = frozenset({NotEvaluated, NotTried})


def tried(context: DrainContext, refused: Mapping[str, Reason], rehomed: Rehomed) -> dict[str, FailedPlacement]:
    """By name. `refused`: why each node is no candidate, where it was looked at."""
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


# --- All that keeps one node from being emptied, pod by pod: a plan tells the first, and a person asks for the others.
#
# Who takes what is left of PodDisruptionBudgets, and room, depends on who went before. So the search for places is done
# once more, the way the plan went, and when the turn of the node comes each of its pods is asked about. A node that is
# not tried, for whatever reason, is asked about at the end, when others have taken what they need.


def keepers(inputs: Inputs, draft: Draft, node: str) -> list[Reason]:
    """Why each of its pods stays, by namespace and name; nothing where no pod keeps it, or no policy names its pool."""
    context = DrainContext(inputs, draft)
    drain_node = context.by_name.get(node)
    if drain_node is None:
        return []
    members, snapshot = Members(context), context.fleet.snapshot
    trial = rehome(context, eligible(EligibilityContext(context)).order, members)
    with snapshot.fork(), snapshot.part(GpuClaims).judged(context.claims.pools, context.fleet.lent.keys()):
        return _Asking(context, members, trial.way, drain_node).hold_reasons(trial.order)


def pod_of(reason: Reason) -> Ref | None:
    """The pod that keeps its node; None where none does."""
    return reason.facts.pod if isinstance(reason.facts, PodBlocker) else None


class _Asking(Rehoming):
    """A search that looks closer at one node."""

    def __init__(self, context: DrainContext, members: Members, way: Search, drain_node: DrainNode) -> None:
        super().__init__(context, members, way)
        self._asked_about = drain_node
        self._reasons: list[Reason] | None = None

    def hold_reasons(self, order: Sequence[DrainNode]) -> list[Reason]:
        self.run(order)
        return self._blockers() if self._reasons is None else self._reasons

    def _refuse_blocked(self, order: Iterable[DrainNode]) -> None:
        """The node is asked about in its turn, whatever keeps it."""
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
        """What keeps its pods whatever room there is; each gang is asked about as a whole."""
        context, drain_node, gangs = self._context, self._asked_about, self._members
        reasons: list[Reason] = []
        blockers: set[tuple[str, str]] = set()
        for pod in self._movings.of(self._snapshot.rows.row_of[drain_node.name]).pods:
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
        """Its pods for which there is no room beside the others; of those that are alike, the first by name."""
        snapshot, drain_node = self._snapshot, self._asked_about
        row, of = snapshot.rows.row_of[drain_node.name], snapshot.classes.of
        if row in self._takers:
            return
        pods = self._movings.of(row).pods
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
