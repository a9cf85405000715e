"""What is sent for each verb, given the object as it stands: what the API server takes only where it still stands so.

Whatever is so already is done, and nothing is sent. The version that was seen goes with each write: where another
wrote in between, the API server says so, and one looks again.
"""

from typing import Any

import msgspec

from reconciler.kube.api_server import APPLY_PATCH, MERGE_PATCH, ApiRequest
from reconciler.kube.apply.resource_paths import api_version, kind_of, path_of
from reconciler.kube.decode import one
from reconciler.model import names
from reconciler.model.plan.action import Act, Apply, Bind, Delete, Evict, Hold, Ref, Status
from reconciler.model.plan.decision import Decision
from reconciler.plan.manifests.compare import compare
from reconciler.protocol.lease_binding import unbindable
from reconciler.protocol.manifests import why_unapplied
from reconciler.protocol.own_status import is_published
from reconciler.protocol.patches import Editing, edit_of
from reconciler.protocol.preconditions import DONE, Object, WriteResult, identified, presumed

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
