"""Gates are lifted by those whose they are: ours only where there is room for the pod."""

from collections.abc import Iterator

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import InvariantContext, is_ours
from reconciler.simulate.invariants.ownership import OBSERVED_WITHIN_MS
from reconciler.simulate.objects import Key, ObjectWrite

_LONG_AGO = Instant(-OBSERVED_WITHIN_MS)


class OthersGates:
    """Whoever else holds a pod back has a reason."""

    rule = "no gate of another is lifted by us"
    kinds = ("Pod",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if is_ours(written) and (others := _lifted(written) - {names.CAPACITY_GATE}):
            yield f"{'/'.join(written.key)} is no longer held back by {' and '.join(sorted(others))}"


class RoomFirst:
    """A pod that waits for capacity is let go when there is some. What smart pods hold is room for it, and so is what
    was taken within the last minute, which may not have been known."""

    rule = "no pod that waits for capacity is let go before there is room"
    kinds = ("Node", "Pod")

    def __init__(self) -> None:
        self._lessened_at = _LONG_AGO  # when a node went, or was closed to pods

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        now = context.now()
        if written.key[0] == "Node":
            self._lessened_at = now if is_lessened(written) else self._lessened_at
            return
        if not is_ours(written) or names.CAPACITY_GATE not in _lifted(written):
            return
        if now - self._lessened_at >= OBSERVED_WITHIN_MS and not _has_room(written.key, context):
            yield f"{'/'.join(written.key)} is let go, and no node has room for it"


def _lifted(written: ObjectWrite) -> frozenset[str]:
    if written.before is None or written.after is None:
        return frozenset()
    return _gates(written.before) - _gates(written.after)


def _gates(pod: Object) -> frozenset[str]:
    return frozenset(each["name"] for each in pod["spec"].get("schedulingGates") or ())


def is_lessened(written: ObjectWrite) -> bool:
    if written.before is None or written.after is None:
        return written.before is not None
    return bool(_shut(written.after) - _shut(written.before))


def _shut(node: Object) -> frozenset[str]:
    """What keeps pods away from it."""
    spec = node.get("spec") or {}
    found = {f"{each['key']}:{each['effect']}" for each in spec.get("taints") or ()}
    return frozenset(found | {"cordoned"} if spec.get("unschedulable") else found)


def _has_room(key: Key, context: InvariantContext) -> bool:
    snapshot, pod = context.snapshot(), context.world.read_object(key)
    if pod is None or snapshot.nominated:  # for whom others make room just now is not known here
        return True
    pod_class = snapshot.classes.of(pod)
    if pod_class.unmodelled or snapshot.part(FilterChain).mask(pod_class).any():
        return True
    passing = _passing(context, pod_class.priority)
    nodes = {context.where.pods[each].node for each in passing}
    rows = sorted(snapshot.rows.row_of[each] for each in nodes if each in snapshot.rows.row_of)
    return any(_has_room_on(row, pod_class, snapshot, passing) for row in rows)


def _passing(context: InvariantContext, priority: int) -> set[Key]:
    """Pods that make way for one of that priority, and those that have just come."""
    where, since = context.where, context.now() - OBSERVED_WITHIN_MS
    smart = ((key, context.world.read_object(key)) for key in where.smart)
    result = {key for key, pod in smart if pod is not None and pod.spec.priority < priority}
    for key, came in reversed(where.placed.items()):
        if came < since:
            break
        result.add(key)
    return result


def _has_room_on(row: int, pod_class: PodClass, snapshot: Snapshot, passing: set[Key]) -> bool:
    with snapshot.fork():
        for each in snapshot.pods_of_row(row):
            if ("Pod", each.metadata.namespace, each.name) in passing:
                snapshot.remove(snapshot.classes.of(each), row)
        return snapshot.part(FilterChain).fits(pod_class, row)
