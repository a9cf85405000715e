"""Passes observed changes on to the desks, in their order."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.controller.agents import AgentDesk
from reconciler.kube.watch.changes import Absent, Change, Listed, ObjectEvent
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import PressurePolicy
from reconciler.protocol.desk import Desk
from reconciler.protocol.pressure_desk import PressureDesk

_FIELDS: Mapping[str, type[Any]] = {"nodes": Node, "pods": Pod, "leases": Lease, "policies": Unstructured}

_NEEDED = frozenset({"Node", "Pod", "Lease", "GpuClaim", "GpuNodeStatus"})
_NEEDED_FOR_PRESSURE = frozenset({"Node", "Pod"})

Key = tuple[str, str]  # namespace and name


class DeskFeed:
    """Owner of the last objects of each kind, to tell the desks what a new list no longer has."""

    def __init__(self, desk: Desk | None = None, pressure: PressureDesk | None = None) -> None:
        self._objects: dict[ResourceKind, dict[Key, Any]] = {}
        self._put: dict[type[Any], list[Callable[[Any], None]]] = {each: [] for each in _FIELDS.values()}
        self._drop: dict[type[Any], list[Callable[[Any], None]]] = {each: [] for each in _FIELDS.values()}
        self._unread: list[tuple[set[ResourceKind], Desk | PressureDesk]] = []
        if desk is not None:
            self._feed(desk, _NEEDED)
            self._tell(Lease, desk.put_lease, desk.drop_lease)
            self._tell(Unstructured, desk.put_policy, desk.drop_policy)
        if pressure is not None:
            self._feed(pressure, _NEEDED_FOR_PRESSURE)

    def _feed(self, desk: Desk | PressureDesk, needed: frozenset[str]) -> None:
        self._unread.append(({each for each in RESOURCE_KINDS if each.field in _FIELDS and each.kind in needed}, desk))
        self._tell(Node, desk.put_node, lambda node: desk.drop_node(node.name))
        self._tell(Pod, desk.put_pod, desk.drop_pod)

    def _tell(self, kind: type[Any], put: Callable[[Any], None], drop: Callable[[Any], None]) -> None:
        self._put[kind].append(put)
        self._drop[kind].append(drop)

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
        for key in before.keys() - after.keys():
            _call(self._drop[expected], before[key])
        for key, found in after.items():
            if before.get(key) is not found:
                _call(self._put[expected], found)
        for unread, desk in self._unread:
            unread.discard(kind)
            desk.is_read = not unread

    def _heed(self, kind: ResourceKind, found: Any, *, is_gone: bool) -> None:
        expected, objects, key = _FIELDS[kind.field], self._objects.setdefault(kind, {}), _key(found)
        before = objects.pop(key, None)
        if before is not None and (is_gone or before.metadata.uid != found.metadata.uid):
            _call(self._drop[expected], before)
        if not is_gone and isinstance(found, expected):
            objects[key] = found
            _call(self._put[expected], found)


def _call(handlers: Sequence[Callable[[Any], None]], found: Any) -> None:
    for handler in handlers:
        handler(found)


def _key(found: Any) -> Key:
    return found.metadata.namespace, found.metadata.name


# --- The place of the desks on the event loop of the main thread.

_MIX_SECONDS = 10.0
_RENEWED_AT_ONCE = 20  # answers, about a millisecond
_RENEWAL_SECONDS = 0.002


class DeskLoop:
    """Passes everything that changes the desks from other threads to the thread of the event loop, in
    order. Without an event loop, nothing is passed on.
    """

    def __init__(self, desk: Desk | None, agents: AgentDesk | None = None) -> None:
        self._desk, self._agents = desk, agents
        self._feed = DeskFeed(desk, agents.desk if agents is not None else None)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._take: Callable[[], None] = lambda: None
        self._pools: Sequence[Declared[GpuPool]] = ()
        self._pressures: Sequence[Declared[PressurePolicy]] | None = None  # None: never set

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
            self._loop.call_soon_threadsafe(self._feed_desks, changes)

    def _feed_desks(self, changes: Sequence[Change]) -> None:
        self._feed.take(changes)
        if self._agents is not None:
            self._agents.renew_term()

    def set_policies(self, desired: Desired) -> None:
        """The policies in force. Called on the thread of the loop that plans."""
        if self._loop is None:
            return
        if self._desk is not None and desired.pools is not self._pools:
            self._pools = desired.pools
            self._loop.call_soon_threadsafe(self._desk.set_pools, desired.pools)
        if self._agents is not None and desired.pressures is not self._pressures:
            self._pressures = desired.pressures
            self._loop.call_soon_threadsafe(self._agents.set_policies, desired.pressures)

    def renew_term(self) -> None:
        """Leadership may have changed. Called on any thread."""
        if self._agents is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._agents.renew_term)

    def _look_at_mix(self) -> None:
        if self._desk is None:
            return
        self._desk.look_at_mix()
        if self._loop is not None:
            self._loop.call_later(_MIX_SECONDS, self._look_at_mix)
            self._renew_answers()

    def _renew_answers(self) -> None:
        """In small steps, so that no question waits for long."""
        if self._desk is not None and self._desk.renew_answers(_RENEWED_AT_ONCE) and self._loop is not None:
            self._loop.call_later(_RENEWAL_SECONDS, self._renew_answers)
