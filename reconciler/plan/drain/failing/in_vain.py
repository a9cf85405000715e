"""Drains that were in vain, since a node came for the pods that they moved: their pool is left alone for half an hour
then, and twice as long each further time.

A place is found for each pod that is moved, but the scheduler may choose another. Where all fit to the last GPU, one
of them may then find none, and Karpenter buys: the node that was saved is back, and would be drained again, and again.
A node came for such a pod if it is younger than that pod, which runs on it. What did not come again for six hours
after such a rest is forgotten.
"""

from collections.abc import Iterator

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, moment, timestamp
from reconciler.model.planned.drained import InVain, Moved
from reconciler.plan.drain.replacing import owner_of
from reconciler.plan.drain.site import Seen, Site

_FIRST_MS = 1_800_000
_DOUBLINGS = 3
_FORGOTTEN_MS = 21_600_000
_NODE_COMES_WITHIN_MS = 1_200_000


def rests_until(each: InVain) -> Instant:
    """When nodes of its pool may be drained again."""
    return Instant(each.at + _FIRST_MS * 2 ** min(each.times - 1, _DOUBLINGS))


def moved(site: Site) -> tuple[Moved, ...]:
    """Whose pods were moved off nodes of which pool, for as long as a node may come for them."""
    recent = (each for each in site.memory.moved if site.now - each.at <= _NODE_COMES_WITHIN_MS)
    found = {(each.pool, each.owner): each for each in recent}
    for each in site.memory.evicted:
        if each.owner:
            key = each.pool, each.owner
            before = found.get(key, Moved(*key, each.first, each.at))
            found[key] = Moved(*key, min(before.since, each.first), max(before.at, each.at))
    return tuple(sorted(found.values()))


def in_vain(site: Site) -> tuple[InVain, ...]:
    """By pool; with what is seen only now. Several nodes that came since the last time count once."""
    known = {each.pool: each for each in site.memory.in_vain if site.now < rests_until(each) + _FORGOTTEN_MS}
    for pool, came in _came(site):
        before = known.get(pool)
        if before is None or came > before.at:
            known[pool] = InVain(pool, site.now, before.times + 1 if before is not None else 1)
    return tuple(sorted(known.values()))


def _came(site: Site) -> Iterator[tuple[str, Instant]]:
    """When nodes came for pods that had been moved, and the pools that these had left."""
    since = {(each.pool, each.owner): each.since for each in moved(site)}
    if not since:
        return
    pools: dict[str, list[str]] = {}
    for pool, owner in since:
        pools.setdefault(owner, []).append(pool)
    earliest = timestamp(_second(min(since.values())))
    what_if = site.fleet.what_if
    young = (each for each in site.seen if each.node.metadata.creation_timestamp >= earliest)  # all in one format
    for seen in young:
        for pod in what_if.pods_of_row(what_if.rows.row_of[seen.name]):
            owner, made, came = owner_of(pod), _made(pod), _made(seen)
            for pool in pools.get(owner, ()):
                if _second(since[pool, owner]) <= made <= came:
                    yield pool, came


def _made(what: Pod | Seen) -> Instant:
    metadata = what.metadata if isinstance(what, Pod) else what.node.metadata
    return moment(metadata.creation_timestamp) or Instant(0)


def _second(at: Instant) -> Instant:
    """As creation is told."""
    return Instant(at // 1_000 * 1_000)
