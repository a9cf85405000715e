"""The search for places where it is not known where pods went the last time, as after a restart: in several ways.

A packing that is full to the brim is found again by hints. Without them the first one may leave a candidate without a
place, which would lose its timer though there is room for all. So the search is done again: with those ahead that lost
theirs, from other nodes on, from either end, and with all pods from one node on, until none is lost or nothing is left
to try. What comes of it are the hints of the next plan, which needs no more than one search.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from reconciler.fleet.placing import Search
from reconciler.fleet.predicates.gpu_claims import GpuClaims
from reconciler.plan.drain import reasons
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.rehome import Rehomed, Rehoming
from reconciler.plan.drain.site import Seen, Site

_USUAL = Search(backwards=True)
_STARTS, _FEW = 8, 100  # from so many nodes on, where no more than a few are tried

# What another way may put right.
_BY_WAY = frozenset({reasons.NO_PLACE.code, reasons.GANG_NO_PLACE.code, reasons.DESTINATION.code})


def rehome(site: Site, order: Sequence[Seen], members: Members) -> Rehomed:
    """What is changed in the fleet for it is taken back."""
    found = _searched(site, order, members, _USUAL)
    lost = _lost(site, order, found)
    for way, step in product(_ways(order), (1, -1, 0)) if lost and not found.left_out else ():
        if not lost:
            break
        ahead = lost[::step] if step else []
        again = _searched(site, [*ahead, *(each for each in order if each not in ahead)], members, way)
        left = _lost(site, order, again)
        if len(left) < len(lost):
            found, lost = again, left
    return found


def _ways(order: Sequence[Seen]) -> Iterator[Search]:
    starts = "", *(each.name for each in order[: _STARTS if len(order) <= _FEW else 0])
    for anew, start, backwards in product((False, True), starts, (True, False)):
        yield Search(start, backwards, anew=anew)


def _searched(site: Site, order: Sequence[Seen], members: Members, way: Search) -> Rehomed:
    what_if = site.fleet.what_if
    with what_if.fork(), what_if.part(GpuClaims).judged(site.claims.pools, site.fleet.lent.keys()):
        return Rehoming(site, members, way).run(order)


def _lost(site: Site, order: Sequence[Seen], found: Rehomed) -> list[Seen]:
    """Candidates of which no hint is there, and for whose pods there is no place, or that have to take others."""
    before, told = site.inputs.hints.destinations, found.refused
    timed = (each for each in order if each.candidate_since is not None and each.name not in before)
    return [each for each in timed if each.name in told and told[each.name].code in _BY_WAY]
