"""Passes observed changes on to the desk, in their order."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.kube.watch.changes import Absent, Change, Listed, ObjectEvent
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared
from reconciler.model.policy.gpu import GpuPool
from reconciler.protocol.desk import Desk

_FIELDS: Mapping[str, type[Any]] = {"nodes": Node, "pods": Pod, "leases": Lease, "policies": Unstructured}

_NEEDED = frozenset({"Node", "Pod", "Lease", "GpuClaim", "GpuNodeStatus"})

Key = tuple[str, str]  # namespace and name


class DeskFeed:
    """Owner of the last objects of each kind, to tell the desk what a new list no longer has."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._objects: dict[ResourceKind, dict[Key, Any]] = {}
        self._unread = {each for each in RESOURCE_KINDS if each.field in _FIELDS and each.kind in _NEEDED}
        self._put: Mapping[type[Any], Callable[[Any], None]] = {
            Node: desk.put_node,
            Pod: desk.put_pod,
            Lease: desk.put_lease,
            Unstructured: desk.put_policy,
        }
        self._drop: Mapping[type[Any], Callable[[Any], None]] = {
            Node: lambda node: desk.drop_node(node.name),
            Pod: desk.drop_pod,
            Lease: desk.drop_lease,
            Unstructured: desk.drop_policy,
        }

    def take(self, changes: Sequence[Change]) -> None:
        """Apply changes. Objects that are set aside count as absent."""
        for change in changes:
            match change:
                case Listed(resource_kind=kind, items=items) if kind.field in _FIELDS:
                    self._replace(kind, items)
                case Absent(resource_kind=kind) if kind.field in _FIELDS:
                    self._replace(kind, ())
                case ObjectEvent(resource_kind=kind, event=event) if kind.field in _FIELDS and event.object is not None:
                    self._heed(kind, event.object, is_gone=event.type == "DELETED")
                case _:
                    pass

    def _replace(self, kind: ResourceKind, items: Sequence[Any]) -> None:
        expected, before = _FIELDS[kind.field], self._objects.get(kind, {})
        after = {_key(each): each for each in items if isinstance(each, expected)}
        self._objects[kind] = after
        self._unread.discard(kind)
        self._desk.is_read = not self._unread
        for key in before.keys() - after.keys():
            self._drop[expected](before[key])
        for key, found in after.items():
            if before.get(key) is not found:
                self._put[expected](found)

    def _heed(self, kind: ResourceKind, found: Any, *, is_gone: bool) -> None:
        expected, objects, key = _FIELDS[kind.field], self._objects.setdefault(kind, {}), _key(found)
        before = objects.pop(key, None)
        if before is not None and (is_gone or before.metadata.uid != found.metadata.uid):
            self._drop[expected](before)
        if not is_gone and isinstance(found, expected):
            objects[key] = found
            self._put[expected](found)


def _key(found: Any) -> Key:
    return found.metadata.namespace, found.metadata.name


# --- The desk's place on the event loop of the main thread.

_MIX_SECONDS = 10.0
_RENEWED_AT_ONCE = 20  # answers, about a millisecond
_RENEWAL_SECONDS = 0.002


class DeskLoop:
    """Passes everything that changes the desk from other threads to the thread of the event loop, in
    order. Without an event loop, nothing is passed on.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk, self._feed = desk, DeskFeed(desk)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._take: Callable[[], None] = lambda: None
        self._pools: Sequence[Declared[GpuPool]] = ()

    def start(self, take: Callable[[], None]) -> None:
        """Called on the event loop, before changes are observed. `take` takes observed changes into the store."""
        self._loop, self._take = asyncio.get_running_loop(), take
        self._look_at_mix()

    def wake(self) -> None:
        """Changes were observed. Called on any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._take)

    def pass_on(self, changes: Sequence[Change]) -> None:
        """Called on any thread, in the order of the changes."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._feed.take, changes)

    def set_pools(self, pools: Sequence[Declared[GpuPool]]) -> None:
        """The pools of the policies in force. Called on the thread of the loop that plans."""
        if self._loop is not None and pools is not self._pools:
            self._pools = pools
            self._loop.call_soon_threadsafe(self._desk.set_pools, pools)

    def _look_at_mix(self) -> None:
        self._desk.look_at_mix()
        if self._loop is not None:
            self._loop.call_later(_MIX_SECONDS, self._look_at_mix)
            self._renew_answers()

    def _renew_answers(self) -> None:
        """In small steps, so that no question waits for long."""
        if self._desk.renew_answers(_RENEWED_AT_ONCE) and self._loop is not None:
            self._loop.call_later(_RENEWAL_SECONDS, self._renew_answers)
