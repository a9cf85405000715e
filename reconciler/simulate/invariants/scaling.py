"""Empty nodes leave as they should: announced, kept from pods in time, never in use, and never too many of them."""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.by_time import min_size_at
from reconciler.simulate.invariants.invariant import InvariantContext, goes, is_marked, is_ours, pool_of, taints_of
from reconciler.simulate.invariants.ownership import OBSERVED_WITHIN_MS
from reconciler.simulate.objects import ObjectWrite

_LEAST_MARKED_MS = 60_000
_LEAST_HARD_MS = 30_000
_LONG_AGO = Instant(0)


class _Marked(msgspec.Struct, frozen=True, gc=False):
    """Since when a node bears a mark, and since when pods are kept away by it."""

    since: Instant
    hard_since: Instant | None


class Announced:
    """A node that scaling deletes was marked a minute before, hard for half a minute, and its time has come."""

    rule = "no node is deleted before its time, nor within 30 s of pods being kept away"
    kinds = ("Node",)

    def __init__(self) -> None:
        self._marked: dict[str, _Marked] = {}

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        name, now = written.key[2], context.now()
        known = self._marked.get(name) or _existing_mark(written.before)
        if is_ours(written) and goes(written) and _is_for_scaling(written.before, context):
            yield from _too_early(name, known, _mark(written.before), now)
        after = _follow(known, written.after, now)
        if after is None or written.after is None:
            self._marked.pop(name, None)
        else:
            self._marked[name] = after


def _existing_mark(node: Object | None) -> _Marked | None:
    """Of a mark that was there before anybody looked."""
    mark = _mark(node)
    return None if mark is None else _Marked(_LONG_AGO, _LONG_AGO if _is_hard(mark) else None)


def _follow(known: _Marked | None, node: Object | None, now: Instant) -> _Marked | None:
    mark = _mark(node)
    if mark is None:
        return None
    known = known or _Marked(now, None)
    return _Marked(known.since, (known.hard_since or now) if _is_hard(mark) else None)


def _too_early(name: str, known: _Marked | None, mark: Object | None, now: Instant) -> Iterator[str]:
    if known is None or mark is None:
        yield f"Node/{name} is deleted and was not marked"
    elif known.hard_since is None:
        yield f"Node/{name} is deleted while pods may still be placed on it"
    elif now - known.hard_since < _LEAST_HARD_MS:
        yield f"Node/{name} is deleted {now - known.hard_since} ms after pods were kept away"
    elif now - known.since < _LEAST_MARKED_MS:
        yield f"Node/{name} is deleted {now - known.since} ms after it was marked"
    elif now < int(mark.get("value", "0")) * 1_000:
        yield f"Node/{name} is deleted before its time, {mark.get('value')}"


class LeastSize:
    """Of nodes that others take away, those of the last minute are left out: a plan may not have known of them."""

    rule = "no pool is brought below minSize by us"
    kinds = ("Node",)

    def __init__(self) -> None:
        self._lately: dict[str, list[Instant]] = {}  # by pool, when others took nodes away

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not goes(written):
            return
        name, now = written.key[2], context.now()
        pool = _pool(written.before)
        wish = _wish(pool, context)
        if wish is None:
            return
        lately = [each for each in self._lately.get(pool, ()) if now - each < OBSERVED_WITHIN_MS]
        if not is_ours(written):
            lately.append(now)
        self._lately[pool] = lately
        totals = context.where.pools.get(pool)
        left = totals.nodes if totals else 0
        # A schedule that begins now may not be known yet.
        least = min(min_size_at(wish, now), min_size_at(wish, Instant(now - OBSERVED_WITHIN_MS)))
        if is_ours(written) and left + len(lately) < least:
            yield f"Node/{name} is deleted, {left} nodes of {pool} are left, and minSize is {least}"


class IdleMarks:
    """What had been in use for a minute is known to be."""

    rule = "no node in use is marked by us"
    kinds = ("Node",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not is_ours(written) or not is_marked(written):
            return
        name, where, now = written.key[2], context.where, context.now()
        if names.DELETION_TIME not in taints_of(written.after) or not where.counting_on(name):
            return
        if now - where.flipped.get(name, now) >= OBSERVED_WITHIN_MS:
            yield f"Node/{name} is marked with {where.counting_on(name)} pods on it"


def _is_for_scaling(node: Object | None, context: InvariantContext) -> bool:
    """Whether only scaling may have deleted it: nobody drains it, and a provisioner sizes its pool."""
    return _wish(_pool(node), context) is not None and names.DRAINING not in taints_of(node)


def _wish(pool: str, context: InvariantContext) -> NodeProvisioner | None:
    node_provisioners = (each.spec for each in context.desired().provisioners if each.spec.pool_name == pool)
    return next((each for each in node_provisioners if not each.suspend), None)


def _pool(node: Object | None) -> str:
    return "" if node is None else pool_of(node)


def _mark(node: Object | None) -> Object | None:
    taints = ((node or {}).get("spec") or {}).get("taints") or ()
    found = [each for each in taints if each["key"] == names.DELETION_TIME]
    return next((each for each in found if _is_hard(each)), found[0] if found else None)


def _is_hard(mark: Object) -> bool:
    return bool(mark.get("effect") != "PreferNoSchedule")
