"""Owner of the decoded state of a simulated cluster: changed objects are decoded, the others keep their identity.

Stored objects are immutable, so a decoded object, or a decoded part that two versions share, stays valid.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import NodeClass
from reconciler.model.cluster.observed import Observed, Quiet
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.cluster.workload import Workload
from reconciler.model.instant import Instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import Key

OBSERVED_STEP_MS = 30_000  # maximum age of an unchanged Observed, as on a real cluster

_BY_KIND: defaultdict[str, list[ResourceKind]] = defaultdict(list)
for _each in RESOURCE_KINDS:
    _BY_KIND[_each.kind].append(_each)
_BY_TITLE = sorted(RESOURCE_KINDS, key=lambda each: each.title)


Known = Callable[[ResourceKind, Key, Object], Any]  # an object as another observer decoded it; None if it has not

_IN_PARTS = ("metadata", "spec", "status")
_PARTS: dict[type[Any], tuple[tuple[str, Any], ...]] = {
    each.type: tuple((field.name, field.type) for field in msgspec.structs.fields(each.type))
    for each in RESOURCE_KINDS
    if each.type.__struct_fields__ == _IN_PARTS
}


class SimulatedObserver:
    """Returns an Observed, the same one while nothing changes."""

    def __init__(
        self, cluster_uid: str, elsewhere: Known | None = None, own_namespace: str = names.OWN_NAMESPACE
    ) -> None:
        self._elsewhere = elsewhere
        self._found: dict[ResourceKind, dict[tuple[str, str], Any]] = {each: {} for each in RESOURCE_KINDS}
        self._bodies: dict[Key, Object] = {}  # the sources of decoded objects
        self._observed = Observed(cluster_uid=cluster_uid, own_namespace=own_namespace)
        self._fields: set[str] = set()  # fields to rebuild

    def observed(self, changed: Iterable[tuple[Key, Object | None]], now: Instant, is_quiet: bool = False) -> Observed:
        """`changed`: the current state of each object, or None if deleted.

        `is_quiet`: all changes are known to be old.
        """
        for key, body in changed:
            self.take(key, body)
        fields = self._fields
        if fields or now >= self._observed.seen_at + OBSERVED_STEP_MS:
            quiet = tuple(Quiet(each.title, now) for each in _BY_TITLE) if is_quiet else ()
            shown: dict[str, Any] = {field: self._shown(field) for field in sorted(fields)}
            self._observed = msgspec.structs.replace(self._observed, seen_at=now, quiet=quiet, **shown)
            self._fields = set()
        return self._observed

    def take(self, key: Key, body: Object | None) -> None:
        """Applies one object, in constant time."""
        before = self._bodies.pop(key, None)
        for resource_kind in _BY_KIND[key[0]]:
            found, name = self._found[resource_kind], key[1:]
            if body is not None and _is_looked_at(resource_kind, body, self._observed.own_namespace):
                known = self._elsewhere(resource_kind, key, body) if self._elsewhere is not None else None
                found[name] = _read(resource_kind, body, (before, found.get(name))) if known is None else known
            elif found.pop(name, None) is None:
                continue
            self._fields.add(resource_kind.field)
        if body is not None:
            self._bodies[key] = body

    def known(self, resource_kind: ResourceKind, key: Key, body: Object) -> Any:
        """The decoded object, if it is of the same version."""
        return self._found[resource_kind].get(key[1:]) if self._bodies.get(key) is body else None

    def get(self, key: Key) -> Any | None:
        """The object as last applied; only of watched kinds."""
        return self._found[_BY_KIND[key[0]][0]].get(key[1:])

    def _shown(self, field: str) -> tuple[Any, ...]:
        found = [self._found[each].values() for each in RESOURCE_KINDS if each.field == field]
        return tuple(found[0]) if len(found) == 1 else tuple(chain.from_iterable(found))


def whole(body: Object) -> Unstructured:
    """An object that is kept unstructured."""
    rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata"}}
    return Unstructured(body["apiVersion"], body["kind"], msgspec.convert(body["metadata"], UnstructuredMetadata), rest)


def _is_looked_at(resource_kind: ResourceKind, body: Object, own_namespace: str) -> bool:
    metadata = body["metadata"]
    if resource_kind.namespace_for(own_namespace) not in {"", metadata.get("namespace")}:
        return False
    if not resource_kind.selector:
        return True
    key, _, value = resource_kind.selector.partition("=")
    return bool((metadata.get("labels") or {}).get(key) == value)


def _read(resource_kind: ResourceKind, body: Object, before: tuple[Object | None, Any]) -> Any:
    """`before`: the previous version of the object, and its decoded form."""
    if resource_kind.type in _PARTS:
        return _in_parts(resource_kind.type, body, before)
    if resource_kind.type is Unstructured:
        return whole(body)
    if resource_kind.type is NodeClass:
        return NodeClass(msgspec.convert(body["metadata"], Metadata), resource_kind.kind, body.get("spec") or {})
    found = msgspec.convert(body, resource_kind.type)
    return msgspec.structs.replace(found, kind=resource_kind.kind) if resource_kind.type is Workload else found


def _in_parts(kind: type[Any], body: Object, before: tuple[Object | None, Any]) -> Any:
    """Most writes change one part: the other decoded parts are reused."""
    body_before, read_before = before
    parts = {}
    for name, of in _PARTS[kind]:
        if name in body:
            part = body[name]
            is_same = read_before is not None and body_before is not None and body_before.get(name) is part
            parts[name] = getattr(read_before, name) if is_same else msgspec.convert(part, of)
    return kind(**parts)
