"""Owner of the objects of an imagined cluster, as JSON has them, and of their versions.

An object that is stored is never changed: a write puts another in its place. So whoever holds one holds it as it was.
"""

from collections.abc import Iterable

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object

Key = tuple[str, str, str]  # kind, namespace, name
GRACE_SECONDS = 30  # that a pod has to end where it says nothing of it


class Write(msgspec.Struct, frozen=True):
    """An object as it will stand; or that it goes."""

    body: Object
    is_gone: bool = False


class ObjectWrite(msgspec.Struct, frozen=True):
    """One write, once it stands."""

    key: Key
    before: Object | None  # None: it was made
    after: Object | None  # None: it is gone
    by: str = ""  # the field manager who wrote, where one is named


def key_of(body: Object) -> Key:
    metadata = body["metadata"]
    return body["kind"], metadata.get("namespace", ""), metadata["name"]


class ObjectStore:
    """By kind, namespace and name, in the order in which they were made."""

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[tuple[str, str], Object]] = {}
        self._version = 0
        self._made = 0
        self._changed: dict[Key, None] = {}

    def get(self, ref: Ref) -> Object | None:
        """By its name; the uid of the ref is not minded."""
        return self._by_kind.get(ref.kind, {}).get((ref.namespace, ref.name))

    def at(self, key: Key) -> Object | None:
        return self._by_kind.get(key[0], {}).get(key[1:])

    def kinds(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_kind))

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


def begin_deletion(found: Object, now: Instant, grace_seconds: int = 0) -> Write:
    """What the API server does when something is deleted: finalizers and running pods are waited for. What is going
    already can only be given less time."""
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
    """Whether it is a pod that may be running somewhere."""
    ended = (body.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    return body["kind"] == "Pod" and bool((body.get("spec") or {}).get("nodeName")) and not ended


# --- What the parts of an imagined cluster tell each other on its objects, and no real cluster knows.

RUN_SECONDS = f"{names.OURS}simulated-run-seconds"  # annotation of a pod: how long after its start it succeeds
SAVE_SECONDS = f"{names.OURS}simulated-save-seconds"  # annotation of a pod: how long it takes to save its work
WORKLOAD = f"{names.OURS}simulated-workload"  # label of a pod: which workload of the scenario it is of
GPU_MILLI = f"{names.OURS}simulated-gpu-milli"  # annotation of a pod: how much of its one GPU it uses, if not all


# --- Conditions, in which objects tell how they are: at most one of a type, with when it last turned.


def condition(type: str, status: str, now: Instant, reason: str = "") -> Object:  # noqa: A002
    """One of them."""
    result = {"type": type, "status": status, "lastTransitionTime": timestamp(now)}
    if reason:
        result["reason"] = reason
    return result


def with_condition(body: Object, new: Object) -> list[Object]:
    """All that an object tells, one of them anew."""
    conditions: list[Object] = (body.get("status") or {}).get("conditions") or []
    return [*(each for each in conditions if each["type"] != new["type"]), new]


def says(body: Object, type: str) -> str:  # noqa: A002 - what Kubernetes calls it
    """True, False or Unknown; nothing where nothing is told."""
    for each in (body.get("status") or {}).get("conditions") or ():
        if each["type"] == type:
            return str(each["status"])
    return ""
