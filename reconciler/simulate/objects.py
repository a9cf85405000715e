"""Owner of the objects of an imagined cluster, as JSON has them, and of their versions.

An object that is stored is never changed: a write puts another in its place. So whoever holds one holds it as it was.
"""

from collections.abc import Iterable

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.model.planned.action import Ref
from reconciler.protocol.presumed import Object

Key = tuple[str, str, str]  # kind, namespace, name


class Write(msgspec.Struct, frozen=True):
    """An object as it will stand; or that it goes."""

    body: Object
    is_gone: bool = False


def key_of(body: Object) -> Key:
    metadata = body["metadata"]
    return body["kind"], metadata.get("namespace", ""), metadata["name"]


class Objects:
    """By kind, namespace and name, in the order in which they were made."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[tuple[str, str], Object]] = {}
        self._version = 0
        self._made = 0
        self._changed: dict[Key, None] = {}

    def get(self, ref: Ref) -> Object | None:
        """By its name; the uid of the ref is not minded."""
        return self._by_kind.get(ref.kind, {}).get((ref.namespace, ref.name))

    def of(self, kind: str) -> Iterable[Object]:
        return self._by_kind.get(kind, {}).values()

    def write(self, write: Write, now: Instant) -> Object:
        """Gives it the next version; what is new gets a uid and the hour too."""
        key = key_of(write.body)
        kept = self._by_kind.setdefault(key[0], {})
        self._changed[key] = None
        self._version += 1
        if write.is_gone:
            kept.pop(key[1:], None)
            return write.body
        metadata = {**write.body["metadata"], "resourceVersion": str(self._version)}
        before = kept.get(key[1:])
        if before is None:
            self._made += 1
            new = {"uid": f"uid-{self._made}", "creationTimestamp": timestamp(now), "generation": 1}
            metadata = new | metadata
        elif before.get("spec") != write.body.get("spec"):
            metadata["generation"] = before["metadata"]["generation"] + 1
        body = {**write.body, "metadata": metadata}
        kept[key[1:]] = body
        return body

    def take_changed(self) -> tuple[Key, ...]:
        """What was written since this was last asked."""
        changed = tuple(self._changed)
        self._changed.clear()
        return changed


def going(found: Object, now: Instant, grace_seconds: int = 0) -> Write:
    """What the API server does when something is deleted: finalizers and running pods are waited for."""
    metadata = found["metadata"]
    is_on_a_node = found["kind"] == "Pod" and bool((found.get("spec") or {}).get("nodeName"))
    if not metadata.get("finalizers") and not (is_on_a_node and grace_seconds):
        return Write(found, is_gone=True)
    leaves_at = Instant(now + grace_seconds * 1000)
    marked = {**metadata, "deletionTimestamp": timestamp(leaves_at), "deletionGracePeriodSeconds": grace_seconds}
    return Write({**found, "metadata": marked})
