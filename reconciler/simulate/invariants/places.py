"""Every evicted pod fits elsewhere: checked with the scheduler's predicates, independently of the planners' placement.

Pods that were evicted before and are not back yet are placed as well: the pod may not take their place. Several
orders of placement are tried, and one must succeed.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.simulate.actors.workloads import owner_of
from reconciler.simulate.invariants.evictions import evicted_by_us, gang_of, of_gang
from reconciler.simulate.invariants.invariant import LONG_AGO, InvariantContext, is_ours
from reconciler.simulate.invariants.smart_pods import is_lessened
from reconciler.simulate.objects import Key, ObjectWrite, is_finished, is_leaving, node_of

_LEAVES = frozenset({names.DELETION_TIME, names.DRAINING, names.DISRUPTED})


class _Moved(msgspec.Struct, frozen=True, gc=False):
    until: Instant  # room is reserved for the pod until then
    pod: Pod
    owner: tuple[Key, str] | None


class PlaceFirst:
    """Removals and bindings by others in the last minute may not have been observed."""

    rule = "only pods that fit elsewhere are evicted"
    kinds = ("Node", "Pod")

    def __init__(self) -> None:
        self._moved: list[_Moved] = []
        self._lessened_at = LONG_AGO  # when another component last removed or closed a node

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        now = context.now()
        if written.key[0] == "Node":
            if not is_ours(written) and is_lessened(written):
                self._lessened_at = now
            return
        body = evicted_by_us(written)
        if body is None or not (pod := msgspec.convert(body, Pod)).counts:
            return
        self._moved = [each for each in self._moved if now <= each.until]
        owner = owner_of(body)
        others = [*self._others(owner, context)]
        policy = context.policy_on(pod.node)  # it reserves room for an evicted pod that is not back
        kept_ms = 1_000 * policy.spec.recent_eviction_seconds if policy is not None else 0
        self._moved.append(_Moved(Instant(now + kept_ms), pod, owner))
        if not context.lasts_since(self._lessened_at) or context.snapshot().nominated:
            return
        gang = gang_of(body, context)
        leaves = [msgspec.convert(each, Pod) for each in of_gang(gang, context)] if gang else []
        mates = (each for each in leaves if not each.metadata.leaving and each.metadata.uid != pod.metadata.uid)
        if not _has_place(pod, [*others, *mates], leaves, context):
            yield f"{'/'.join(written.key)} is evicted from Node/{pod.node}, but fits on no remaining node"

    def _others(self, of: tuple[Key, str] | None, context: InvariantContext) -> Iterator[Pod]:
        """Evicted pods that are not back: of each owner, at most the missing ones besides the pod evicted now."""
        left: dict[str, int] = {of[1]: _lacking(*of, context) - 1} if of is not None else {}
        for each in self._moved:
            if each.owner is None:
                continue
            key, uid = each.owner
            if uid not in left:
                left[uid] = _lacking(key, uid, context)
            if left[uid] > 0:
                left[uid] -= 1
                yield each.pod


def _lacking(key: Key, uid: str, context: InvariantContext) -> int:
    """Number of an owner's pods that should be on nodes but are not."""
    owner = context.world.at(key)
    if owner is None or owner["metadata"]["uid"] != uid:
        return 0
    spec, own = owner["spec"], [each for each in context.world.of("Pod") if (owner_of(each) or ("", ""))[1] == uid]
    wanted = int(spec.get("replicas", spec.get("parallelism", 1)))
    if key[0] == "Job":
        done = sum(each["status"].get("phase") == "Succeeded" for each in own)
        wanted = min(wanted, int(spec.get("completions", wanted)) - done)
    there = (each for each in own if node_of(each) and not is_finished(each))
    return wanted - sum(not is_leaving(each) for each in there)


def _has_place(pod: Pod, others: Sequence[Pod], gang: Sequence[Pod], context: InvariantContext) -> bool:
    """In the current state, or as observable up to a minute ago.

    A gang leaves whole, and may return to the nodes it leaves.
    """
    snapshot, row_of = context.snapshot(), context.snapshot().rows.row_of
    with snapshot.fork():
        own = {row_of[pod.node]} if not gang and pod.node in row_of else set()
        leaving = {*_leaving(snapshot), *own}
        for each in gang:
            row, pod_class = row_of.get(each.node), snapshot.classes.of(each)
            if row is not None and row not in leaving and snapshot.booked_on(row).get(pod_class):
                snapshot.remove(pod_class, row)
        for row in sorted(leaving):
            snapshot.vacate(row)
        if _together(snapshot, pod, others):
            return True
        lately = [*_placed_lately(context, snapshot)]
        for each in lately:
            snapshot.remove(snapshot.classes.of(each), snapshot.rows.row_of[each.node])
        owners = {owner.uid for each in (pod, *others) if (owner := each.metadata.controller) is not None}
        back = [each for each in lately if (owner := each.metadata.controller) and owner.uid in owners]
        return bool(lately) and _together(snapshot, pod, [*others, *back])


def _leaving(snapshot: Snapshot) -> Iterator[int]:
    """Nodes that are being removed."""
    rows = snapshot.rows
    for row in sorted(rows.row_of.values()):
        node = rows.node(row)
        keys = {each.key for each in node.spec.taints if each.effect != "PreferNoSchedule"}
        if rows.alive[row] and (keys & _LEAVES or node.metadata.leaving):
            yield row


def _takes(snapshot: Snapshot, row: int) -> bool:
    """Whether the node is reliable; pods on unreliable nodes count anyway."""
    node = snapshot.rows.node(row)
    return bool(snapshot.rows.alive[row]) and node.is_ready and not node.spec.unschedulable


def _placed_lately(context: InvariantContext, snapshot: Snapshot) -> Iterator[Pod]:
    for key, since in reversed(context.where.placed.items()):
        if context.lasts_since(since):
            return
        pod: Pod | None = context.world.read_object(key)
        row = snapshot.rows.row_of.get(pod.node) if pod is not None else None
        if pod is not None and row is not None and snapshot.booked_on(row).get(snapshot.classes.of(pod)):
            yield pod


def _together(snapshot: Snapshot, pod: Pod, others: Sequence[Pod]) -> bool:
    """Whether the pod has a place without taking one from another."""
    one, *rest = (snapshot.classes.class_as_placed(each).anew for each in (pod, *others))
    most = max(_placed(snapshot, order, forwards) for order in _orders(rest) for forwards in (True, False))
    return any(
        _placed(snapshot, order, forwards) > most
        for order in ([one, *rest], [*rest, one], *_orders([one, *rest]))
        for forwards in (True, False)
    )


def _orders(classes: Sequence[PodClass]) -> Iterator[list[PodClass]]:
    """Largest first, and largest last."""
    by_size = sorted(classes, key=lambda each: (sum(amount for _, amount in each.held), each.number))
    yield by_size[::-1]
    yield by_size


def _placed(snapshot: Snapshot, classes: Sequence[PodClass], forwards: bool) -> int:
    """The number of pods placed one after another by first fit."""
    rows = [row for _, row in sorted(snapshot.rows.row_of.items()) if _takes(snapshot, row)]
    judging, result = snapshot.part(FilterChain), 0
    with snapshot.fork():
        for each in classes:
            fitting = (row for row in (rows if forwards else rows[::-1]) if judging.fits(each, row))
            if (row := next(fitting, None)) is not None:
                snapshot.add(each, row)
                result += 1
    return result
