"""Owner of the objects of a simulated cluster, as JSON, and of their versions.

Stored objects are immutable: a write replaces the object, so references to the previous state stay valid.
"""

from collections.abc import Iterable

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object

Key = tuple[str, str, str]  # kind, namespace, name
GRACE_SECONDS = 30  # a pod's default grace period


class Write(msgspec.Struct, frozen=True):
    """The new state of an object, or its removal."""

    body: Object
    is_gone: bool = False


class ObjectWrite(msgspec.Struct, frozen=True):
    """A completed write."""

    key: Key
    before: Object | None  # None: created
    after: Object | None  # None: deleted
    by: str = ""  # field manager, if named


def key_of(body: Object) -> Key:
    metadata = body["metadata"]
    return body["kind"], metadata.get("namespace", ""), metadata["name"]


class ObjectStore:
    """By kind, namespace and name, in creation order."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[tuple[str, str], Object]] = {}
        self._version = 0
        self._made = 0
        self._changed: dict[Key, None] = {}

    def get(self, ref: Ref) -> Object | None:
        """By name; ignores the uid of the ref."""
        return self._by_kind.get(ref.kind, {}).get((ref.namespace, ref.name))

    def at(self, key: Key) -> Object | None:
        return self._by_kind.get(key[0], {}).get(key[1:])

    def kinds(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_kind))

    def of(self, kind: str) -> Iterable[Object]:
        return self._by_kind.get(kind, {}).values()

    def write(self, write: Write, now: Instant) -> Object:
        """Assigns the next version, and to a new object a uid and creation time."""
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
        """The keys written since the last call."""
        changed = tuple(self._changed)
        self._changed.clear()
        return changed


def begin_deletion(found: Object, now: Instant, grace_seconds: int = 0) -> Write:
    """Deletion as in the API server: waits for finalizers and running pods.

    For an object that is being deleted, the grace period can only be shortened.
    """
    metadata = found["metadata"]
    grace = grace_seconds if _takes_time(found) else 0
    before = metadata.get("deletionGracePeriodSeconds", 0)
    if metadata.get("deletionTimestamp") and grace >= before:
        return Write(found)
    if not metadata.get("finalizers") and not grace:
        return Write(found, is_gone=True)
    began = Instant(instant(metadata["deletionTimestamp"]) - before * 1000) if before else now
    leaves_at = timestamp(Instant(began + grace * 1000))
    marked = {**metadata, "deletionTimestamp": leaves_at, "deletionGracePeriodSeconds": grace}
    return Write({**found, "metadata": marked})


def _takes_time(body: Object) -> bool:
    """Whether the object is a pod that may be running."""
    ended = (body.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return body["kind"] == "Pod" and bool((body.get("spec") or {}).get("nodeName")) and not ended


# --- Private annotations and labels of the simulation.

RUN_SECONDS = f"{names.OURS}simulated-run-seconds"  # annotation of a pod: run time until success
SAVE_SECONDS = f"{names.OURS}simulated-save-seconds"  # annotation of a pod: time that a checkpoint takes
WORKLOAD = f"{names.OURS}simulated-workload"  # label of a pod: its workload in the scenario
GPU_MILLI = f"{names.OURS}simulated-gpu-milli"  # annotation of a pod: used share of its GPU, if not all


# --- Conditions: at most one per type, with the time of the last transition.


def condition(type: str, status: str, now: Instant, reason: str = "") -> Object:  # noqa: A002
    """A condition."""
    result = {"type": type, "status": status, "lastTransitionTime": timestamp(now)}
    if reason:
        result["reason"] = reason
    return result


def with_condition(body: Object, new: Object) -> list[Object]:
    """All conditions, with the new one replacing that of the same type."""
    conditions: list[Object] = (body.get("status") or {}).get("conditions") or []
    return [*(each for each in conditions if each["type"] != new["type"]), new]


def says(body: Object, type: str) -> str:  # noqa: A002 - what Kubernetes calls it
    """True, False or Unknown; empty if the condition is absent."""
    for each in (body.get("status") or {}).get("conditions") or ():
        if each["type"] == type:
            return str(each["status"])
    return ""
