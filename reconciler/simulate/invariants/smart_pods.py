"""Smart pods: one per need, and deleted soon after their node is ready."""

from collections.abc import Iterator

import msgspec

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.node import untolerated
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import (
    LONG_AGO,
    OBSERVED_WITHIN_MS,
    InvariantContext,
    checks,
    is_ours,
)
from reconciler.simulate.objects import Key, ObjectWrite, annotations_of, is_finished, is_leaving, taints_of

_OUTSTAYS_MS = 2 * 60_000
_RESTARTED_MS = 3_000


class OnePerNeed:
    """A smart pod is identified by the key and pool of its request.

    A pod created while watches are delayed may not be observable yet.
    """

    rule = "there is one smart pod per need"
    kinds = ("Pod",)

    def __init__(self) -> None:
        self._made: dict[Key, tuple[Instant, int]] = {}  # time, and the controller's presence at that time

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if written.after is None:
            self._made.pop(written.key, None)
        if written.before is not None or written.key not in context.where.smart:
            return
        self._made[written.key] = context.now(), context.presence_ms()
        wanted = need_of(written.after)
        for key in context.where.smart if wanted else ():
            other = context.world.at(key)
            if key == written.key or other is None or is_leaving(other) or is_finished(other):
                continue  # it does not request a node, or no longer
            if need_of(other) == wanted and not self._is_news(key, context):
                yield f"{'/'.join(written.key)} is created although {'/'.join(key)} exists for {wanted}"
                return

    def _is_news(self, key: Key, context: InvariantContext) -> bool:
        """Whether no up-to-date controller has run since; a new process observes everything at once."""
        made, presence_ms = self._made.get(key, (context.now(), 0))
        return context.now() - made > _RESTARTED_MS and context.presence_ms() == presence_ms


class _Key(msgspec.Struct):
    key: str = ""
    pool: str = ""


def need_of(pod: Object | None) -> str:
    """Key and pool of its request; empty if unreadable."""
    try:
        key = msgspec.json.decode(annotations_of(pod).get(names.ORIGINAL_REQUEST, ""), type=_Key)
    except msgspec.DecodeError:
        return ""
    return f"{key.key} in {key.pool}" if key.key and key.pool else key.key


class GoneInTime:
    """Deleted once its node is usable and a controller runs; not late while deletion is not allowed."""

    rule = "smart pods are deleted within two minutes after their node is ready"
    kinds = ("Namespace", "Node", "NodePool", "Pod")

    def __init__(self) -> None:
        self._since_ms: dict[Key, int] = {}  # pods to be deleted, with the controller's presence at that time
        self._told: set[str] = set()  # uids
        self._desired: Desired | None = None

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        smart = context.where.smart
        if not smart and not self._since_ms:
            return
        is_changed = self._desired is not context.desired()
        if is_changed:  # deletion may have become allowed only now
            self._desired = context.desired()
            self._since_ms.clear()
        for key in smart if is_changed or written.key[0] != "Pod" else (written.key,):
            self._look_at(key, context)
        yield from self._late(context)

    def _look_at(self, key: Key, context: InvariantContext) -> None:
        if key in context.where.smart and _should_go(key, context):
            self._since_ms.setdefault(key, context.presence_ms())
        else:
            self._since_ms.pop(key, None)

    def _late(self, context: InvariantContext) -> Iterator[str]:
        """The oldest smart pods come first."""
        limit_ms = context.presence_ms() - _OUTSTAYS_MS
        for key, since_ms in self._since_ms.items():
            if since_ms >= limit_ms:
                return
            pod: Pod = context.world.read_object(key)  # type: ignore[assignment]  # it is there
            if pod.metadata.uid not in self._told:
                self._told.add(pod.metadata.uid)
                yield f"{'/'.join(key)} exists although Node/{pod.node} has been usable for two minutes"


def _should_go(key: Key, context: InvariantContext) -> bool:
    """Whether all its pods can use the node, and deletion is allowed."""
    pod: Pod | None = context.world.read_object(key)
    if pod is None or pod.metadata.leaving or not pod.node:
        return False
    node: Node | None = context.world.read_object(("Node", "", pod.node))
    observed = context.where.nodes.get(pod.node)
    if node is None or observed is None or node.metadata.leaving or node.spec.unschedulable or observed.gpus < pod.gpus:
        return False
    is_ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    declared = context.desired().pool(observed.pool)
    may_act = declared is not None and declared.spec.mode == "Enforce" and not declared.spec.suspend
    if not is_ready or not may_act or untolerated(node.spec.taints, pod.spec.tolerations) is not None:
        return False
    # Nothing may be frozen, not even with an expired freeze.
    over = (("Namespace", context.world.own_namespace), ("NodePool", observed.pool), ("Node", pod.node))
    return not any(annotations_of(context.world.at((kind, "", name))).get(names.FROZEN_UNTIL) for kind, name in over)


# --- Scheduling gates: reconciler removes only its own, and only if the pod fits.


@checks("reconciler removes no scheduling gate of others", "Pod")
def others_gates(written: ObjectWrite, _: InvariantContext) -> Iterator[str]:
    if is_ours(written) and (others := _lifted(written) - {names.CAPACITY_GATE}):
        yield f"{'/'.join(written.key)} no longer has the gate {' and '.join(sorted(others))}"


class RoomFirst:
    """A pod that waits for capacity is ungated only when there is room.

    Room held by smart pods counts, and so does room used within the last minute, which may not have been observed.
    """

    rule = "pods that wait for capacity are ungated only when a node has room"
    kinds = ("Node", "Pod")

    def __init__(self) -> None:
        self._lessened_at = LONG_AGO  # when a node was removed or closed to pods

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if written.key[0] == "Node":
            self._lessened_at = context.now() if is_lessened(written) else self._lessened_at
            return
        is_lifted = is_ours(written) and names.CAPACITY_GATE in _lifted(written)
        if is_lifted and context.lasts_since(self._lessened_at) and not _has_room(written.key, context):
            yield f"{'/'.join(written.key)} is ungated, but no node has room for it"


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
    """The taints that exclude pods, and cordoning."""
    found = {f"{each['key']}:{each['effect']}" for each in taints_of(node)}
    return frozenset(found | {"cordoned"} if (node.get("spec") or {}).get("unschedulable") else found)


def _has_room(key: Key, context: InvariantContext) -> bool:
    snapshot, pod = context.snapshot(), context.world.read_object(key)
    if pod is None or snapshot.nominated:  # ongoing preemptions are unknown here
        return True
    pod_class = snapshot.classes.of(pod)
    if pod_class.unmodelled or snapshot.part(FilterChain).mask(pod_class).any():
        return True
    passing = _passing(context, pod_class.priority)
    nodes = {context.where.pods[each].node for each in passing}
    rows = sorted(snapshot.rows.row_of[each] for each in nodes if each in snapshot.rows.row_of)
    return any(_has_room_on(row, pod_class, snapshot, passing) for row in rows)


def _passing(context: InvariantContext, priority: int) -> set[Key]:
    """Pods that a pod of that priority may preempt, and pods bound just now."""
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
