"""Smart pods are what they should be: one for each need, and gone soon after what they were for has come."""

from collections.abc import Iterator

import msgspec

from reconciler.fleet.filters.taints import untolerated
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import InvariantContext
from reconciler.simulate.objects import Key, ObjectWrite

_OUTSTAYS_MS = 2 * 60_000
_RESTARTED_MS = 3_000
_ENDED = frozenset({"Succeeded", "Failed"})


class OnePerNeed:
    """A smart pod is known by the key of its request, by which another of its pool would be seen to be the same. One
    that was made while watches are late can't be known yet."""

    rule = "no two smart pods are there for one need"
    kinds = ("Pod",)

    def __init__(self) -> None:
        self._made: dict[Key, tuple[Instant, int]] = {}  # when, and what the controller's presence was then

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if written.after is None:
            self._made.pop(written.key, None)
        if written.before is not None or written.key not in context.where.smart:
            return
        self._made[written.key] = context.now(), context.presence_ms()
        wanted = need_of(written.after)
        for key in context.where.smart if wanted else ():
            other = context.world.at(key)
            if key == written.key or other is None or not is_live(other) or need_of(other) != wanted:
                continue
            if not self._is_news(key, context):
                yield f"{'/'.join(written.key)} is made though {'/'.join(key)} is there for {wanted}"
                return

    def _is_news(self, key: Key, context: InvariantContext) -> bool:
        """Whether nobody who sees soon has been there since; a new process sees all at once."""
        made, presence_ms = self._made.get(key, (context.now(), 0))
        return context.now() - made > _RESTARTED_MS and context.presence_ms() == presence_ms


class _Key(msgspec.Struct):
    key: str = ""
    pool: str = ""


def need_of(pod: Object | None) -> str:
    """The key of its request, and of which pool it is; nothing where that can't be read."""
    annotations = ((pod or {}).get("metadata") or {}).get("annotations") or {}
    try:
        key = msgspec.json.decode(annotations.get(names.ORIGINAL_REQUEST, ""), type=_Key)
    except msgspec.DecodeError:
        return ""
    return f"{key.key} in {key.pool}" if key.key and key.pool else key.key


def is_live(pod: Object) -> bool:
    """Whether it still asks for something."""
    return not pod["metadata"].get("deletionTimestamp") and (pod.get("status") or {}).get("phase") not in _ENDED


class GoneInTime:
    """Once its node is usable it goes, as soon as there is somebody to delete it; where nobody may, it is not late."""

    rule = "no smart pod outlives the coming of its node by two minutes"
    kinds = ("Namespace", "Node", "NodePool", "Pod")

    def __init__(self) -> None:
        self._since_ms: dict[Key, int] = {}  # pods that should go: what the controller's presence was then
        self._told: set[str] = set()  # uids
        self._desired: Desired | None = None

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        smart = context.where.smart
        if not smart and not self._since_ms:
            return
        is_changed = self._desired is not context.desired()
        if is_changed:  # what was allowed until now may not have been before
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
        """The first have been there for longest."""
        limit_ms = context.presence_ms() - _OUTSTAYS_MS
        for key, since_ms in self._since_ms.items():
            if since_ms >= limit_ms:
                return
            pod: Pod = context.world.read_object(key)  # type: ignore[assignment]  # it is there
            if pod.metadata.uid not in self._told:
                self._told.add(pod.metadata.uid)
                yield f"{'/'.join(key)} is there though Node/{pod.node} has been usable for two minutes"


def _should_go(key: Key, context: InvariantContext) -> bool:
    """Whether its node can be used by all that it is for, and it may be deleted."""
    pod: Pod | None = context.world.read_object(key)
    if pod is None or pod.metadata.leaving or not pod.node:
        return False
    node: Node | None = context.world.read_object(("Node", "", pod.node))
    observed = context.where.nodes.get(pod.node)
    if node is None or observed is None or node.metadata.leaving or node.spec.unschedulable or observed.gpus < pod.gpus:
        return False
    is_ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    if not is_ready or untolerated(node.spec.taints, pod.spec.tolerations) is not None:
        return False
    return _may_act(observed.pool, pod.node, context)


def _may_act(pool: str, node: str, context: InvariantContext) -> bool:
    """Whether nothing is frozen, even if the freeze is over by now, and the pool is ours to act on."""
    declared = context.desired().pool(pool)
    if declared is None or declared.spec.mode != "Enforce" or declared.spec.suspend:
        return False
    over = (("Namespace", "", context.world.own_namespace), ("NodePool", "", pool), ("Node", "", node))
    bodies = (context.world.at(each) or {} for each in over)
    return not any(((each.get("metadata") or {}).get("annotations") or {}).get(names.FROZEN_UNTIL) for each in bodies)
