"""The search for places, in several ways where it is not known where pods went the last time, as after a restart.

A packing that is full to the brim is found again by hints. Without them the first one may leave a candidate without a
place, which would lose its timer though there is room for all. So the search is done again: with those ahead that lost
theirs, from other nodes on, from either end, and with all pods from one node on, until none is lost, or nothing is left
to try, or all steps are taken that a plan has. A way is taken if it keeps more candidates, and all of those of which
hints are there; one that leaves a pod without a place that is on its way already is never taken for another. What comes
of it are the hints of the next plan, which needs no more than one search.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import msgspec
from msgspec.structs import replace

from reconciler.fleet.filters.gpu_claims import GpuClaims
from reconciler.fleet.first_fit import Search
from reconciler.plan.drain.candidates import completing
from reconciler.plan.drain.codes.blockers import GangWithoutPlace, PodWithoutPlace
from reconciler.plan.drain.codes.eligibility import IsDestination
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gangs.members import Members
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
