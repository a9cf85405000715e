"""Invariants for the removal of empty and drained nodes."""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, unix_seconds
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.evictions import evicted_by_us, waited_for
from reconciler.simulate.invariants.invariant import (
    LONG_AGO,
    OBSERVED_WITHIN_MS,
    OUR_TAINTS,
    InvariantContext,
    begins,
    checks,
    deleted_by_us,
    goes,
    is_open,
    is_ours,
    marks,
    min_size_at,
    removal_taints,
)
from reconciler.simulate.invariants.ownership import whose
from reconciler.simulate.objects import ObjectWrite, declared_pool_of, is_leaving, node_of, taints_of

_EMPTY_MS = 60_000
_BATCH_MS = 30_000  # within which all nodes of a batch must be tainted


class WholeBatches:
    """The batch is what was remembered before its taints were sent."""

    rule = "pods are evicted only after all nodes of the batch are tainted"
    kinds = ("Node", "Pod")

    def __init__(self) -> None:
        self._batch_of: dict[str, Instant] = {}  # by uid of the node
        self._missing: dict[Instant, dict[str, str]] = {}  # batch -> untainted nodes, by uid

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if begins(written) and written.after is not None:
            self._begin(written.after["metadata"]["uid"], context)
        elif (pod := evicted_by_us(written)) is not None:
            node = context.node(node_of(pod))
            batch = self._batch_of.get(node["metadata"]["uid"]) if node is not None else None
            missing = self._missing.get(batch) if batch is not None else None
            if missing:
                first = min(missing.values())
                yield f"{'/'.join(written.key)} is evicted, but Node/{first} of the same batch is not tainted"
        elif written.key[0] == "Node" and written.after is None and written.before is not None:
            self._batch_of.pop(written.before["metadata"]["uid"], None)
            in_use = {*self._batch_of.values()}
            self._missing = {at: each for at, each in self._missing.items() if at in in_use}

    def _begin(self, uid: str, context: InvariantContext) -> None:
        batch = context.memory().drained.batch
        if batch is None:
            return
        named = {uid: name for name, uid in batch.nodes}
        if uid in named:
            self._batch_of[uid] = batch.at
            self._missing.setdefault(batch.at, named).pop(uid, None)


@checks("drained nodes are deleted only after a minute without pods", "Node")
def empty_first(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    name, where, now = written.key[2], context.where, context.now()
    node = deleted_by_us(written)
    if node is None or names.DRAINING not in removal_taints(node):
        return
    if where.counting_on(name) and not waited_for(node, context):
        return  # it is unknown since when its stuck pods are ignored
    # For a pod deleted in this write, only the time of the taint is known.
    since = where.flipped.get(name, now) if name in where.nodes else _begun_at(node)
    if since is not None and (where.counting_on(name) or now - since < _EMPTY_MS):
        yield f"Node/{name} is deleted after being empty for {(now - since) // 1_000} s"


@checks("drains begin only in the windows of their policy", "Node")
def in_windows(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """A repeated taint belongs to the start of its batch."""
    if not begins(written) or written.after is None:
        return
    name, now = written.key[2], context.now()
    policy = context.policy_on(name)
    if policy is None:
        yield f"Node/{name} begins to be drained, but no DrainPolicy names its pool"
        return
    at = _begun_at(written.after)
    when = at if at is not None and 0 <= now - at <= _BATCH_MS + 1_000 else now
    windows = policy.spec.windows
    if windows and not any(is_open(each, when) for each in windows):
        yield f"Node/{name} begins to be drained, but no window of DrainPolicy/{policy.name} is open"


def _begun_at(node: Object) -> Instant | None:
    values = (str(each.get("value", "")) for each in taints_of(node) if each["key"] == names.DRAINING)
    return unix_seconds(next(values, ""))


class SlotsKept:
    """Nodes removed by others use slots once that is observable.

    A drained node uses no slot while another component is removing it, and for a while after that, until the change
    is observable.
    """

    rule = "the numbers of nodes draining and leaving stay within policy limits"
    kinds = ("Node",)

    def __init__(self) -> None:
        self._leaving: dict[str, Instant] = {}  # node -> since when
        self._others: dict[str, Instant] = {}  # node -> when another component last changed it

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        name, now = written.key[2], context.now()
        if written.after is None or not _is_going(written.after):
            self._leaving.pop(name, None)
        else:
            self._leaving.setdefault(name, now)
        if any(each is not None and whose(each) for each in (written.before, written.after)):
            self._others[name] = now
        if begins(written):
            yield from self._judged(name, context)

    def _judged(self, name: str, context: InvariantContext) -> Iterator[str]:
        policy = context.policy_on(name)
        if policy is None:
            return
        drains = [each.spec for each in context.desired().drains if not each.spec.suspend]
        own, draining, leaving = policy.spec, [0, 0], [0, 0]  # of this policy, and of all
        for each, since in self._leaving.items():
            of, node = context.policy_on(each), context.node(each)
            is_drained = names.DRAINING in removal_taints(node)
            is_counted = not self._is_others(each, node, context) if is_drained else context.lasts_since(since)
            if of is None or not is_counted:
                continue
            # A node with a new pod may have begun as an empty node, without a slot.
            is_known = context.lasts_since(context.where.flipped.get(each))
            is_busy = is_drained and bool(waited_for(node or {}, context)) and is_known
            for at in (0, 1) if of is policy else (1,):
                leaving[at] += 1
                draining[at] += is_busy
        most_drained = own.max_drain_parallelism, max(each.max_drain_parallelism for each in drains)
        most_leaving = own.max_scale_down_parallelism, max(each.max_scale_down_parallelism for each in drains)
        for counted, most, text in ((draining, most_drained, "are drained"), (leaving, most_leaving, "leave")):
            if any(count > limit for count, limit in zip(counted, most, strict=True)):
                more = f"{counted[0]} of DrainPolicy/{policy.name} {text} at the same time"
                yield f"Node/{name} begins to be drained: {more}"

    def _is_others(self, name: str, node: Object | None, context: InvariantContext) -> bool:
        if node is None or is_leaving(node):
            return False
        return bool(whose(node)) or not context.lasts_since(self._others.get(name, LONG_AGO))


def _is_going(node: Object) -> bool:
    hard = {each["key"] for each in taints_of(node) if each["effect"] != "PreferNoSchedule"}
    return is_leaving(node) or bool(hard & OUR_TAINTS)


# --- Removal of empty nodes: announced by a taint, closed to pods in time, never in use, within the minimum size.

_LEAST_MARKED_MS = 60_000
_LEAST_HARD_MS = 30_000


class _Marked(msgspec.Struct, frozen=True, gc=False):
    """Since when a node has the taint, and since when the taint excludes pods."""

    since: Instant
    hard_since: Instant | None


class Announced:
    """A node that scaling deletes was tainted a minute before, with NoSchedule for half a minute, and its delay has
    ended.
    """

    rule = "nodes are deleted only after their delay, and 30 s after NoSchedule"
    kinds = ("Node",)

    def __init__(self) -> None:
        self._marked: dict[str, _Marked] = {}

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        name, now = written.key[2], context.now()
        known = self._marked.get(name) or _existing_mark(written.before)
        node = deleted_by_us(written)
        # Only scaling may delete a node that is not drained and whose pool a NodeProvisioner scales.
        is_scaled = node is not None and context.provisioner(declared_pool_of(node)) is not None
        if is_scaled and names.DRAINING not in removal_taints(node):
            yield from _too_early(name, known, _mark(written.before), now)
        after = _follow(known, written.after, now)
        if after is None or written.after is None:
            self._marked.pop(name, None)
        else:
            self._marked[name] = after


def _existing_mark(node: Object | None) -> _Marked | None:
    """For a taint that existed at the start."""
    mark = _mark(node)
    return None if mark is None else _Marked(Instant(0), Instant(0) if _is_hard(mark) else None)


def _follow(known: _Marked | None, node: Object | None, now: Instant) -> _Marked | None:
    mark = _mark(node)
    if mark is None:
        return None
    known = known or _Marked(now, None)
    return _Marked(known.since, (known.hard_since or now) if _is_hard(mark) else None)


def _too_early(name: str, known: _Marked | None, mark: Object | None, now: Instant) -> Iterator[str]:
    if known is None or mark is None:
        yield f"Node/{name} is deleted without the deletion taint"
    elif known.hard_since is None:
        yield f"Node/{name} is deleted while pods may still be placed on it"
    elif now - known.hard_since < _LEAST_HARD_MS:
        yield f"Node/{name} is deleted {now - known.hard_since} ms after NoSchedule"
    elif now - known.since < _LEAST_MARKED_MS:
        yield f"Node/{name} is deleted {now - known.since} ms after the deletion taint"
    elif now < int(mark.get("value", "0")) * 1_000:
        yield f"Node/{name} is deleted before its time, {mark.get('value')}"


class LeastSize:
    """Removals by others in the last minute are ignored: a plan may not have observed them."""

    rule = "reconciler brings no pool below minSize"
    kinds = ("Node",)

    def __init__(self) -> None:
        self._lately: dict[str, list[Instant]] = {}  # by pool: times of removals by others

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not goes(written) or written.before is None:
            return
        name, now, pool = written.key[2], context.now(), declared_pool_of(written.before)
        if (wish := context.provisioner(pool)) is None:
            return
        lately = [each for each in self._lately.get(pool, ()) if now - each < OBSERVED_WITHIN_MS]
        if not is_ours(written):
            lately.append(now)
        self._lately[pool] = lately
        totals = context.where.pools.get(pool)
        left = totals.nodes if totals else 0
        # A schedule that begins now may not be observed yet.
        least = min(min_size_at(wish, now), min_size_at(wish, Instant(now - OBSERVED_WITHIN_MS)))
        if is_ours(written) and left + len(lately) < least:
            yield f"Node/{name} is deleted, {left} nodes of {pool} are left, minSize is {least}"


@checks("reconciler taints no node in use for deletion", "Node")
def idle_marks(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """A node in use for a minute is observable as such."""
    name, where = written.key[2], context.where
    if not (is_ours(written) and marks(written) and names.DELETION_TIME in removal_taints(written.after)):
        return
    if where.counting_on(name) and context.lasts_since(where.flipped.get(name)):
        yield f"Node/{name} is tainted for deletion with {where.counting_on(name)} pods on it"


def _mark(node: Object | None) -> Object | None:
    found = [each for each in taints_of(node) if each["key"] == names.DELETION_TIME]
    return next((each for each in found if _is_hard(each)), found[0] if found else None)


def _is_hard(mark: Object) -> bool:
    return bool(mark.get("effect") != "PreferNoSchedule")
