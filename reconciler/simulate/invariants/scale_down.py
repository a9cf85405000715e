"""Invariants for the removal of empty and drained nodes."""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.evictions import is_moved, waited_for
from reconciler.simulate.invariants.invariant import (
    InvariantContext,
    goes,
    is_marked,
    is_open,
    is_ours,
    min_size_at,
    policy_of,
    pool_of,
    taints_of,
)
from reconciler.simulate.invariants.ownership import OBSERVED_WITHIN_MS, whose
from reconciler.simulate.objects import ObjectWrite, node_of

_EMPTY_MS = 60_000
_LONG_AGO = Instant(-OBSERVED_WITHIN_MS)
_BATCH_MS = 30_000  # within which all nodes of a batch must be tainted


def begins(written: ObjectWrite) -> bool:
    """Whether one of reconciler's drains begins with this write."""
    added = taints_of(written.after) - taints_of(written.before)
    return is_ours(written) and names.DRAINING in added


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
        elif is_moved(written) and written.before is not None:
            node = context.world.at(("Node", "", node_of(written.before)))
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


class EmptyFirst:
    """A drained node is deleted only after it has been empty for a while."""

    rule = "drained nodes are deleted only after a minute without pods"
    kinds = ("Node",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        name, where, now = written.key[2], context.where, context.now()
        if not is_ours(written) or not goes(written) or names.DRAINING not in taints_of(written.before):
            return
        if where.counting_on(name) and not waited_for(written.before or {}, context):
            return  # it is unknown since when its stuck pods are ignored
        # For a pod deleted in this write, only the time of the taint is known.
        since = where.flipped.get(name, now) if name in where.nodes else _begun_at(written.before or {})
        if since is not None and (where.counting_on(name) or now - since < _EMPTY_MS):
            yield f"Node/{name} is deleted after being empty for {(now - since) // 1_000} s"


class InWindows:
    """A repeated taint belongs to the start of its batch."""

    rule = "drains begin only in the windows of their policy"
    kinds = ("Node",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not begins(written) or written.after is None:
            return
        name, now = written.key[2], context.now()
        policy = policy_of(context.where.nodes[name].pool, context)
        if policy is None:
            yield f"Node/{name} begins to be drained, but no DrainPolicy names its pool"
            return
        at = _begun_at(written.after)
        when = at if at is not None and 0 <= now - at <= _BATCH_MS + 1_000 else now
        windows = policy.spec.windows
        if windows and not any(is_open(each, when) for each in windows):
            yield f"Node/{name} begins to be drained, but no window of DrainPolicy/{policy.name} is open"


def _begun_at(node: Object) -> Instant | None:
    taints = (node.get("spec") or {}).get("taints") or ()
    values = [str(each.get("value", "")) for each in taints if each["key"] == names.DRAINING]
    return Instant(int(values[0]) * 1_000) if values and values[0].isdigit() else None


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
        if written.after is None or not _is_leaving(written.after):
            self._leaving.pop(name, None)
        else:
            self._leaving.setdefault(name, now)
        if any(each is not None and whose(each) for each in (written.before, written.after)):
            self._others[name] = now
        if begins(written):
            yield from self._judged(name, context)

    def _judged(self, name: str, context: InvariantContext) -> Iterator[str]:
        policy = policy_of(context.where.nodes[name].pool, context)
        if policy is None:
            return
        drains = [each.spec for each in context.desired().drains if not each.spec.suspend]
        own, draining, leaving = policy.spec, [0, 0], [0, 0]  # of this policy, and of all
        for each, since in self._leaving.items():
            of = policy_of(context.where.nodes[each].pool, context)
            node = context.world.at(("Node", "", each))
            is_drained = names.DRAINING in taints_of(node)
            if of is None or (is_drained and self._is_others(each, node, context.now())):
                continue
            if not is_drained and context.now() - since < OBSERVED_WITHIN_MS:
                continue
            is_busy = is_drained and bool(waited_for(node or {}, context)) and self._is_known(each, context)
            for at in (0, 1) if of is policy else (1,):
                leaving[at] += 1
                draining[at] += is_busy
        most_drained = own.max_drain_parallelism, max(each.max_drain_parallelism for each in drains)
        most_leaving = own.max_scale_down_parallelism, max(each.max_scale_down_parallelism for each in drains)
        for counted, most, text in ((draining, most_drained, "are drained"), (leaving, most_leaving, "leave")):
            if any(count > limit for count, limit in zip(counted, most, strict=True)):
                yield f"Node/{name} begins to be drained: {counted[0]} of DrainPolicy/{policy.name} {text} at once"

    def _is_others(self, name: str, node: Object | None, now: Instant) -> bool:
        if node is None or node["metadata"].get("deletionTimestamp"):
            return False
        return bool(whose(node)) or now - self._others.get(name, _LONG_AGO) < OBSERVED_WITHIN_MS

    def _is_known(self, name: str, context: InvariantContext) -> bool:
        """Whether it is observable that the node is busy: a node with a new pod may have begun as an empty node,
        without a slot.
        """
        return context.now() - context.where.flipped.get(name, context.now()) >= OBSERVED_WITHIN_MS


def _is_leaving(node: Object) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    hard = {each["key"] for each in taints if each["effect"] != "PreferNoSchedule"}
    return bool(node["metadata"].get("deletionTimestamp")) or bool(hard & {names.DELETION_TIME, names.DRAINING})


# --- Removal of empty nodes: announced by a taint, closed to pods in time, never in use, within the minimum size.

_LEAST_MARKED_MS = 60_000
_LEAST_HARD_MS = 30_000
_SCALING_LONG_AGO = Instant(0)


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
        if is_ours(written) and goes(written) and _is_for_scaling(written.before, context):
            yield from _too_early(name, known, _mark(written.before), now)
        after = _follow(known, written.after, now)
        if after is None or written.after is None:
            self._marked.pop(name, None)
        else:
            self._marked[name] = after


def _existing_mark(node: Object | None) -> _Marked | None:
    """For a taint that existed at the start."""
    mark = _mark(node)
    return None if mark is None else _Marked(_SCALING_LONG_AGO, _SCALING_LONG_AGO if _is_hard(mark) else None)


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
        # A schedule that begins now may not be observed yet.
        least = min(min_size_at(wish, now), min_size_at(wish, Instant(now - OBSERVED_WITHIN_MS)))
        if is_ours(written) and left + len(lately) < least:
            yield f"Node/{name} is deleted, {left} nodes of {pool} are left, minSize is {least}"


class IdleMarks:
    """A node in use for a minute is observable as such."""

    rule = "reconciler taints no node in use for deletion"
    kinds = ("Node",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not is_ours(written) or not is_marked(written):
            return
        name, where, now = written.key[2], context.where, context.now()
        if names.DELETION_TIME not in taints_of(written.after) or not where.counting_on(name):
            return
        if now - where.flipped.get(name, now) >= OBSERVED_WITHIN_MS:
            yield f"Node/{name} is tainted for deletion with {where.counting_on(name)} pods on it"


def _is_for_scaling(node: Object | None, context: InvariantContext) -> bool:
    """Whether only scaling may delete the node: it is not drained, and a NodeProvisioner scales its pool."""
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
