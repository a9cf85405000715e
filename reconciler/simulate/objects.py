"""Owner of the objects of a simulated cluster, as JSON, and of their versions.

Stored objects are immutable: a write replaces the object, so references to the previous state stay valid.
"""

from collections.abc import Iterable, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object

Key = tuple[str, str, str]  # kind, namespace, name
_GRACE_SECONDS = 30  # a pod's default grace period


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


def created(body: Object) -> ObjectWrite:
    """An existing object as if it had just been created."""
    return ObjectWrite(key_of(body), None, body)


def key_of(body: Object) -> Key:
    metadata = body["metadata"]
    return body["kind"], metadata.get("namespace", ""), metadata["name"]


def ref_of(body: Object) -> Ref:
    """Without the uid."""
    return Ref(*key_of(body))


class ObjectStore:
    """By kind, namespace and name, in creation order; `now` is set by the caller."""

    def __init__(self, now: Instant) -> None:
        self.now = now
        self._by_kind: dict[str, dict[tuple[str, str], Object]] = {}
        self._version = 0
        self._made = 0
        self._changed: dict[Key, None] = {}

    def get(self, ref: Ref) -> Object | None:
        """The current object, which must not be modified; ignores the uid of the ref."""
        return self._by_kind.get(ref.kind, {}).get((ref.namespace, ref.name))

    def at(self, key: Key) -> Object | None:
        """The current object, by key."""
        return self._by_kind.get(key[0], {}).get(key[1:])

    def kinds(self) -> tuple[str, ...]:
        """All kinds with current or former objects, in order."""
        return tuple(sorted(self._by_kind))

    def of(self, kind: str) -> Iterable[Object]:
        """All objects of a kind, in creation order."""
        return self._by_kind.get(kind, {}).values()

    def _store(self, write: Write) -> Object:
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
            new = {"uid": f"uid-{self._made}", "creationTimestamp": timestamp(self.now), "generation": 1}
            metadata = new | metadata
        elif before.get("spec") != write.body.get("spec"):
            metadata["generation"] = before["metadata"]["generation"] + 1
        body = {**write.body, "metadata": metadata}
        kept[key[1:]] = body
        return body

    def _take_changed(self) -> tuple[Key, ...]:
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


def grace_seconds_of(body: Object) -> int:
    """The grace period of a deletion: 0 except for pods."""
    return (body.get("spec") or {}).get("terminationGracePeriodSeconds", _GRACE_SECONDS) if body["kind"] == "Pod" else 0


def _takes_time(body: Object) -> bool:
    """Whether the object is a pod that may be running."""
    return body["kind"] == "Pod" and bool(node_of(body)) and not is_finished(body)


# --- Parts of objects as JSON; a part that is missing or null is empty.


def labels_of(body: Object) -> dict[str, str]:
    return body["metadata"].get("labels") or {}


def declared_pool_of(body: Object) -> str:
    """The pool of a node or NodeClaim, or of an object rendered for a pool."""
    labels = labels_of(body)
    return labels.get(names.KARPENTER_POOL) or labels.get(names.POOL, "")


def annotations_of(body: Object | None) -> dict[str, str]:
    return ((body or {}).get("metadata") or {}).get("annotations") or {}


def taints_of(node: Object | None) -> Sequence[Object]:
    return ((node or {}).get("spec") or {}).get("taints") or ()


def node_of(pod: Object | None) -> str:
    """Empty if the pod is not bound."""
    return str(((pod or {}).get("spec") or {}).get("nodeName", ""))


def phase_of(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}


def is_leaving(body: Object) -> bool:
    """Whether the object is being deleted."""
    return bool(body["metadata"].get("deletionTimestamp"))


def selects(budget: Object, pod: Object) -> bool:
    """Whether a PodDisruptionBudget applies to the pod."""
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None or budget["metadata"].get("namespace") != pod["metadata"].get("namespace"):
        return False
    return msgspec.convert(selector, LabelSelector).matches(labels_of(pod))


# --- Private annotations and labels of the simulation.

RUN_SECONDS = f"{names.OURS}simulated-run-seconds"  # annotation of a pod: run time until success
SAVE_SECONDS = f"{names.OURS}simulated-save-seconds"  # annotation of a pod: time that a checkpoint takes
WORKLOAD = f"{names.OURS}simulated-workload"  # label of a pod: its workload in the scenario
GPU_MILLI = f"{names.OURS}simulated-gpu-milli"  # annotation of a pod: used share of its GPU, if not all


# --- Conditions: at most one per type, with the time of the last transition.


def condition(type: str, status: str, now: Instant, reason: str = "") -> Object:  # noqa: A002
    result = {"type": type, "status": status, "lastTransitionTime": timestamp(now)}
    if reason:
        result["reason"] = reason
    return result


def with_condition(body: Object, new: Object) -> list[Object]:
    """All conditions, with the new one replacing that of the same type."""
    return [*without_condition(body, new["type"]), new]


def without_condition(body: Object, type: str) -> list[Object]:  # noqa: A002
    return [each for each in conditions_of(body) if each["type"] != type]


def conditions_of(body: Object) -> Sequence[Object]:
    return (body.get("status") or {}).get("conditions") or ()


def condition_of(body: Object, type: str) -> Object | None:  # noqa: A002
    return next((each for each in conditions_of(body) if each["type"] == type), None)


def says(body: Object | None, type: str, status: str = "True") -> bool:  # noqa: A002
    """Whether the condition has the status."""
    found = condition_of(body, type) if body is not None else None
    return found is not None and found["status"] == status


def is_unschedulable(pod: Object) -> bool:
    """Whether the scheduler reported the pod unschedulable; a removed gate may still be its reason."""
    found = condition_of(pod, "PodScheduled")
    return found is not None and found.get("reason") == "Unschedulable"
