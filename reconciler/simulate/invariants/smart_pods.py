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
from reconciler.simulate.objects import Key, Written

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

    def wrote(self, written: Written, ground: InvariantContext) -> Iterator[str]:
        if written.after is None:
            self._made.pop(written.key, None)
        if written.before is not None or written.key not in ground.where.smart:
            return
        self._made[written.key] = ground.now(), ground.presence_ms()
        wanted = need_of(written.after)
        for key in ground.where.smart if wanted else ():
            other = ground.world.at(key)
            if key == written.key or other is None or not is_live(other) or need_of(other) != wanted:
                continue
            if not self._is_news(key, ground):
                yield f"{'/'.join(written.key)} is made though {'/'.join(key)} is there for {wanted}"
                return

    def _is_news(self, key: Key, ground: InvariantContext) -> bool:
        """Whether nobody who sees soon has been there since; a new process sees all at once."""
        made, presence_ms = self._made.get(key, (ground.now(), 0))
        return ground.now() - made > _RESTARTED_MS and ground.presence_ms() == presence_ms


class _Key(msgspec.Struct):
    key: str = ""
    pool: str = ""


def need_of(pod: Object | None) -> str:
    """The key of its request, and of which pool it is; nothing where that can't be read."""
    annotations = ((pod or {}).get("metadata") or {}).get("annotations") or {}
    try:
        found = msgspec.json.decode(annotations.get(names.ORIGINAL_REQUEST, ""), type=_Key)
    except msgspec.DecodeError:
        return ""
    return f"{found.key} in {found.pool}" if found.key and found.pool else found.key


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

    def wrote(self, written: Written, ground: InvariantContext) -> Iterator[str]:
        smart = ground.where.smart
        if not smart and not self._since_ms:
            return
        is_changed = self._desired is not ground.desired()
        if is_changed:  # what was allowed until now may not have been before
            self._desired = ground.desired()
            self._since_ms.clear()
        for key in smart if is_changed or written.key[0] != "Pod" else (written.key,):
            self._look_at(key, ground)
        yield from self._late(ground)

    def _look_at(self, key: Key, ground: InvariantContext) -> None:
        if key in ground.where.smart and _should_go(key, ground):
            self._since_ms.setdefault(key, ground.presence_ms())
        else:
            self._since_ms.pop(key, None)

    def _late(self, ground: InvariantContext) -> Iterator[str]:
        """The first have been there for longest."""
        limit_ms = ground.presence_ms() - _OUTSTAYS_MS
        for key, since_ms in self._since_ms.items():
            if since_ms >= limit_ms:
                return
            pod: Pod = ground.world.seen(key)  # type: ignore[assignment]  # it is there
            if pod.metadata.uid not in self._told:
                self._told.add(pod.metadata.uid)
                yield f"{'/'.join(key)} is there though Node/{pod.node} has been usable for two minutes"


def _should_go(key: Key, ground: InvariantContext) -> bool:
    """Whether its node can be used by all that it is for, and it may be deleted."""
    pod: Pod | None = ground.world.seen(key)
    if pod is None or pod.metadata.leaving or not pod.node:
        return False
    node: Node | None = ground.world.seen(("Node", "", pod.node))
    seen = ground.where.nodes.get(pod.node)
    if node is None or seen is None or node.metadata.leaving or node.spec.unschedulable or seen.gpus < pod.gpus:
        return False
    is_ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    if not is_ready or untolerated(node.spec.taints, pod.spec.tolerations) is not None:
        return False
    return _may_act(seen.pool, pod.node, ground)


def _may_act(pool: str, node: str, ground: InvariantContext) -> bool:
    """Whether nothing is frozen, even if the freeze is over by now, and the pool is ours to act on."""
    declared = ground.desired().pool(pool)
    if declared is None or declared.spec.mode != "Enforce" or declared.spec.suspend:
        return False
    over = (("Namespace", "", ground.world.own_namespace), ("NodePool", "", pool), ("Node", "", node))
    bodies = (ground.world.at(each) or {} for each in over)
    return not any(((each.get("metadata") or {}).get("annotations") or {}).get(names.FROZEN_UNTIL) for each in bodies)
