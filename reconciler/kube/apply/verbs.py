"""The write request of each verb, given the current object, with preconditions for the API server.

If the object already has the desired state, nothing is sent. Each write has the resourceVersion that was read: if
another writer was faster, the API server reports a conflict, and the object is read again.
"""

from typing import Any

import msgspec

from reconciler.kube.api_server import APPLY_PATCH, MERGE_PATCH, ApiRequest, BadPath, below, folder, folder_in
from reconciler.kube.decode import one
from reconciler.kube.placeholders import served_version
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.decision import Act, Apply, Bind, Decision, Delete, Evict, Hold, Ref, Status
from reconciler.plan.manifests.compare import compare
from reconciler.protocol.patches import Editing, edit_of
from reconciler.protocol.preconditions import (
    DONE,
    Object,
    WriteResult,
    identified,
    is_published,
    presumed,
    unbindable,
    why_unapplied,
)

Next = ApiRequest | WriteResult

_OURS = {"fieldManager": names.FIELD_MANAGER}
_BY_FORCE = {**_OURS, "force": "true"}


class WriteTarget(msgspec.Struct, frozen=True):
    """The subject and its current state."""

    ref: Ref
    live: Object

    @property
    def uid(self) -> str:
        return str(self.live["metadata"]["uid"])

    @property
    def version(self) -> str:
        return str(self.live["metadata"]["resourceVersion"])

    def versioned(self, body: Object) -> Object:
        """The body with the resourceVersion that was read, so that the API server refuses any other version or uid."""
        return {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": self.version}}


def next_write(decision: Decision, found: Object | None) -> Next:
    """The next write, or the final result without a write. Raises BadPath and Undecodable."""
    act, subject = decision.act, decision.subject
    if unapplied := why_unapplied(decision):
        return unapplied
    if isinstance(act, Apply) and found is None and not subject.uid and not act.presumes.resource_version:
        return _applied(act, subject, msgspec.json.decode(act.manifest))
    if (settled := identified(decision, found)) or found is None:
        return settled or DONE
    coming = _coming(act, WriteTarget(subject, found))
    return coming if isinstance(coming, WriteResult) else presumed(decision, found) or coming


def _coming(act: Act | Hold, target: WriteTarget) -> Next:
    match act:
        case Apply():
            return _kept(act, target)
        case Delete():
            return deletion(target.ref, _preconditions(act, target))
        case Evict():
            return eviction(target.ref, act.grace_seconds, _preconditions(act, target))
        case Status():
            return _write_status(act, target)
        case Bind():
            return _bound(act, target)
        case Hold():
            return DONE
    return _edited(act, target)  # type: ignore[arg-type]  # all that is left


def _kept(act: Apply, target: WriteTarget) -> Next:
    """Server-side apply to an existing object."""
    manifest: Object = msgspec.json.decode(act.manifest)
    live = one(kind_of(target.ref), _json(target.live))
    return _applied(act, target.ref, target.versioned(manifest)) if compare(live, manifest).changes else DONE


def _applied(act: Apply, ref: Ref, manifest: Object) -> ApiRequest:
    return ApiRequest("PATCH", path_of(ref), _json(manifest), APPLY_PATCH, _BY_FORCE if act.force else _OURS)


def deletion(ref: Ref, preconditions: dict[str, str]) -> ApiRequest:
    """Deletes the object with the expected uid, not another of the same name."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
    return ApiRequest("DELETE", path_of(ref), _json(options))


def eviction(pod: Ref, grace_seconds: int, preconditions: dict[str, str]) -> ApiRequest:
    """An eviction request; the API server respects PodDisruptionBudgets."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"gracePeriodSeconds": grace_seconds, "preconditions": preconditions},
    }
    return ApiRequest("POST", path_of(pod, "eviction"), _json(body))


def _edited(act: Editing, target: WriteTarget) -> Next:
    """Taints, labels, annotations, gates and sizes: a merge patch with the resourceVersion that was read."""
    edit = edit_of(act, target.live)
    if edit is None:
        return DONE
    patch = _json(target.versioned(edit.patch))
    return ApiRequest("PATCH", path_of(target.ref, edit.subresource), patch, MERGE_PATCH, _OURS)


def _write_status(act: Status, target: WriteTarget) -> Next:
    """The status of one of reconciler's objects, which has no other writer."""
    status = msgspec.json.decode(act.body)
    if is_published(target.live, status):
        return DONE
    head = {"apiVersion": served_version(kind_of(target.ref)), "kind": target.ref.kind}
    body = {**head, "metadata": _named(target.ref), "status": status}
    return ApiRequest("PATCH", path_of(target.ref, "status"), _json(target.versioned(body)), APPLY_PATCH, _BY_FORCE)


def _bound(act: Bind, target: WriteTarget) -> Next:
    """The Binding; its Leases are handled before."""
    if settled := unbindable(act, target.ref.title, target.live):
        return settled
    named = {**_named(target.ref), "uid": target.uid, "annotations": dict(act.annotations)}
    to = {"apiVersion": "v1", "kind": "Node", "name": act.node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": named, "target": to}
    return ApiRequest("POST", path_of(target.ref, "binding"), _json(target.versioned(body)), query=_OURS)


def _named(ref: Ref) -> dict[str, str]:
    return {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})


def _preconditions(act: Act, target: WriteTarget) -> dict[str, str]:
    """Includes the resourceVersion only if the decision presumes one: pods and nodes change all the time."""
    presumes = act.presumes
    version = {"resourceVersion": target.version} if presumes.resource_version or presumes.fields else {}
    return {"uid": target.uid, **version}


def _json(body: Any) -> bytes:
    return msgspec.json.encode(body, order="sorted")


# --- API paths of all written kinds; all of them are served as v1.
#
# Writes come from plans, which may come from files, so each part of a path is checked here again.

# Kinds that are watched, and those that are only written; all are compared whole. The first entry of a kind counts.
_KINDS = (ResourceKind("ConfigMap", "", "configmaps", "", Unstructured), *reversed(RESOURCE_KINDS))
WRITTEN = {
    each.kind: ResourceKind(each.kind, each.group, each.plural, "", Unstructured, each.namespaced) for each in _KINDS
}


class UnknownKind(BadPath):
    """A kind that reconciler does not write."""


def kind_of(ref: Ref) -> ResourceKind:
    """The kind of a reference. Raises UnknownKind."""
    if ref.kind not in WRITTEN:
        raise UnknownKind(f"{ref.title} has an unsupported kind: add the kind to SEEN")
    return WRITTEN[ref.kind]


def path_of(ref: Ref, subresource: str = "") -> str:
    """Path of an object or its subresource. Raises BadPath, including UnknownKind."""
    return below(folder_of(kind_of(ref), ref.namespace), ref.name, subresource)


def folder_of(resource_kind: ResourceKind, namespace: str = "") -> str:
    """Collection path of a kind. Raises BadPath."""
    group, plural = resource_kind.group, resource_kind.plural
    return folder_in(namespace, group, plural) if resource_kind.namespaced else folder(group, plural)
