"""What is sent for each verb, given the object as it stands: what the API server takes only where it still stands so.

Whatever is so already is done, and nothing is sent. The version that was seen goes with each write: where another
wrote in between, the API server says so, and one looks again.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from reconciler.kube.api_server import APPLY_PATCH, MERGE_PATCH, ApiRequest, BadPath, below, folder, folder_in
from reconciler.kube.decode import one
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
    """The subject, and how it stands."""

    ref: Ref
    live: Object

    @property
    def uid(self) -> str:
        return str(self.live["metadata"]["uid"])

    @property
    def version(self) -> str:
        return str(self.live["metadata"]["resourceVersion"])

    def versioned(self, body: Object) -> Object:
        """With the version that was seen: the API server refuses it for any other, and so for any other uid."""
        return {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": self.version}}


def next_write(decision: Decision, found: Object | None) -> Next:
    """What is to be sent, or how it ends without. Raises BadPath and Undecodable."""
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
            return _deleted(act, target)
        case Evict():
            return _evicted(act, target)
        case Status():
            return _write_status(act, target)
        case Bind():
            return _bound(act, target)
        case Hold():
            return DONE
    return _edited(act, target)  # type: ignore[arg-type]  # all that is left


def _kept(act: Apply, target: WriteTarget) -> Next:
    """Server-side apply onto an object that is there."""
    manifest: Object = msgspec.json.decode(act.manifest)
    live = one(kind_of(target.ref), _json(target.live))
    return _applied(act, target.ref, target.versioned(manifest)) if compare(live, manifest).changes else DONE


def _applied(act: Apply, ref: Ref, manifest: Object) -> ApiRequest:
    return ApiRequest("PATCH", path_of(ref), _json(manifest), APPLY_PATCH, _BY_FORCE if act.force else _OURS)


def _deleted(act: Delete, target: WriteTarget) -> Next:
    """What was meant, and nothing that has its name."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": _preconditions(act, target)}
    return ApiRequest("DELETE", path_of(target.ref), _json(options))


def _evicted(act: Evict, target: WriteTarget) -> Next:
    """The pod alone; others that leave with it are seen to before."""
    return eviction(target.ref, act.grace_seconds, _preconditions(act, target))


def eviction(pod: Ref, grace_seconds: int, preconditions: dict[str, str]) -> ApiRequest:
    """Asks a pod to leave; PodDisruptionBudgets are minded by the API server."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"gracePeriodSeconds": grace_seconds, "preconditions": preconditions},
    }
    return ApiRequest("POST", path_of(pod, "eviction"), _json(body))


def _edited(act: Editing, target: WriteTarget) -> Next:
    """Taints, labels, annotations, gates and sizes: a merge patch under the version that was seen."""
    edit = edit_of(act, target.live)
    if edit is None:
        return DONE
    patch = _json(target.versioned(edit.patch))
    return ApiRequest("PATCH", path_of(target.ref, edit.subresource), patch, MERGE_PATCH, _OURS)


def _write_status(act: Status, target: WriteTarget) -> Next:
    """The status of one of our objects, where nobody else has a say."""
    status = msgspec.json.decode(act.body)
    if is_published(target.live, status):
        return DONE
    head = {"apiVersion": api_version(kind_of(target.ref)), "kind": target.ref.kind}
    body = {**head, "metadata": _named(target.ref), "status": status}
    return ApiRequest("PATCH", path_of(target.ref, "status"), _json(target.versioned(body)), APPLY_PATCH, _BY_FORCE)


def _bound(act: Bind, target: WriteTarget) -> Next:
    """The Binding; what is lent with it is seen to before."""
    if settled := unbindable(act, target.ref.title, target.live):
        return settled
    named = {**_named(target.ref), "uid": target.uid, "annotations": dict(act.annotations)}
    to = {"apiVersion": "v1", "kind": "Node", "name": act.node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": named, "target": to}
    return ApiRequest("POST", path_of(target.ref, "binding"), _json(target.versioned(body)), query=_OURS)


def _named(ref: Ref) -> dict[str, str]:
    return {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})


def _preconditions(act: Act, target: WriteTarget) -> dict[str, str]:
    """The version too only where one is presumed: pods and nodes change all the time without becoming others."""
    presumes = act.presumes
    version = {"resourceVersion": target.version} if presumes.resource_version or presumes.fields else {}
    return {"uid": target.uid, **version}


def _json(body: Any) -> bytes:
    return msgspec.json.encode(body, order="sorted")


# --- Where the API server keeps each kind that is written: all of them are served as v1.
#
# What is written comes from plans, and plans from files too: each part of a path is checked here, whoever checked it
# before.

# What is written, and never looked at as a kind.
_UNSEEN = (ResourceKind("ConfigMap", "", "configmaps", "", Unstructured),)


def _by_kind(kinds: Iterable[ResourceKind]) -> dict[str, ResourceKind]:
    resource_kinds: dict[str, ResourceKind] = {}
    for each in kinds:
        resource_kinds.setdefault(
            each.kind, ResourceKind(each.kind, each.group, each.plural, "", Unstructured, each.namespaced)
        )
    return resource_kinds


# Each as it is compared: whole.
WRITTEN = _by_kind((*RESOURCE_KINDS, *_UNSEEN))


class UnknownKind(BadPath):
    """Nobody taught us to write it."""


def kind_of(ref: Ref) -> ResourceKind:
    """Raises UnknownKind."""
    if ref.kind not in WRITTEN:
        raise UnknownKind(f"{ref.title} is of a kind that is not written: give it a line in SEEN")
    return WRITTEN[ref.kind]


def api_version(resource_kind: ResourceKind) -> str:
    """policy/v1, or v1 for Kubernetes' core."""
    return f"{resource_kind.group}/v1" if resource_kind.group else "v1"


def path_of(ref: Ref, subresource: str = "") -> str:
    """Raises BadPath, of which UnknownKind is one."""
    return below(folder_of(kind_of(ref), ref.namespace), ref.name, subresource)


def folder_of(resource_kind: ResourceKind, namespace: str = "") -> str:
    """Where objects of the kind are made. Raises BadPath."""
    return (
        folder_in(namespace, resource_kind.group, resource_kind.plural)
        if resource_kind.namespaced
        else folder(resource_kind.group, resource_kind.plural)
    )
