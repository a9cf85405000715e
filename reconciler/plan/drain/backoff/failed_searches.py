"""Nodes that were tried in vain: when it was tried last, since when it has failed, and why the last time.

There is not time for all nodes in each plan, and then what was found before is what there is to tell. It is kept among
the hints, which may be lost at any time, since nothing is decided by it: in the memory it would have to be written anew
with each plan. A node that may be tried no more, or for which places were found, is forgotten.
"""

from collections.abc import Iterator, Mapping

from reconciler.model.plan.memory import Tried
from reconciler.model.plan.reason import Reason
from reconciler.plan.drain.codes.eligibility import NotEvaluated, NotTried
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.placement import Rehomed

# Nobody looked: what was found before stands.
_UNTRIED = frozenset({NotEvaluated, NotTried})


def tried(site: DrainContext, refused: Mapping[str, Reason], rehomed: Rehomed) -> dict[str, Tried]:
    """By name. `refused`: why each node is no candidate, where it was looked at."""
    return dict(_tried(site, refused, rehomed))


def _tried(site: DrainContext, refused: Mapping[str, Reason], rehomed: Rehomed) -> Iterator[tuple[str, Tried]]:
    for seen in site.seen:
        if seen.name in rehomed.together:
            continue
        found = rehomed.refused.get(seen.name)
        known = _known(site, seen)
        if found is not None:
            uid, since = seen.node.metadata.uid, site.now if known is None else known.since
            yield seen.name, Tried(uid, since, site.now, found)
        elif known is not None and (seen.name not in refused or type(refused[seen.name].facts) in _UNTRIED):
            yield seen.name, known


def _known(site: DrainContext, seen: DrainNode) -> Tried | None:
    found = site.inputs.hints.tried.get(seen.name)
    return found if found is not None and found.uid == seen.node.metadata.uid else None
