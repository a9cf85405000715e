"""The effect of each verb on a simulated cluster: its writes, or a result without writes.

The preconditions are checked by the same code as on a real cluster (protocol/); this module does what the API server
would do.
"""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Act, Apply, Bind, Decision, Delete, Evict, Hold, Ref, Resize, Status
from reconciler.plan.manifests.compare import compare, fixed_fields
from reconciler.protocol.patches import Editing, conflict, edit_of, merged
from reconciler.protocol.preconditions import (
    DONE,
    HELD,
    Object,
    WriteResult,
    adopted_lease,
    identified,
    is_published,
    lent_to_another,
    new_lease,
    occupied,
    presumed,
    said_before,
    text_at,
    unbindable,
    why_unapplied,
)
from reconciler.simulate import api_server
from reconciler.simulate.api_server import Partly, admitted, evicted, left_together, refusal
from reconciler.simulate.objects import (
    ObjectStore,
    Write,
    annotations_of,
    begin_deletion,
    condition,
    grace_seconds_of,
    node_of,
    ref_of,
    with_condition,
)
from reconciler.simulate.observer import whole

Effect = WriteResult | Partly | tuple[Write, ...]

_APART = frozenset({"apiVersion", "kind", "metadata"})


def effect_of(decision: Decision, place: ObjectStore) -> Effect:
    """The writes, in order."""
    act, subject = decision.act, decision.subject
    found = place.get(subject)
    if unapplied := why_unapplied(decision):
        return unapplied
    if isinstance(act, Apply) and found is None and not subject.uid and not act.presumes.resource_version:
        return _made(msgspec.json.decode(act.manifest), place)
    if (settled := identified(decision, found)) or found is None:
        return settled or DONE
    effect = _effect(act, found, place)
    return effect if isinstance(effect, WriteResult) else _not_so(decision, found, place) or effect


def _not_so(decision: Decision, found: Object, place: ObjectStore) -> WriteResult | None:
    """The result if a precondition does not hold."""
    if settled := presumed(decision, found):
        return settled
    act, subject = decision.act, decision.subject
    if isinstance(act, Hold) or not act.presumes.empty:
        return None
    pods = (msgspec.convert(each, Pod) for each in place.of("Pod") if node_of(each) == subject.name)
    return occupied(msgspec.convert(found, Node), pods, act.presumes, place.now)


def _effect(act: Act | Hold, found: Object, place: ObjectStore) -> Effect:
    match act:
        case Apply():
            return _applied(act, found)
        case Delete():
            return (begin_deletion(found, place.now, grace_seconds_of(found)),)
        case Evict(others=()):
            return evicted(act, found, place.of("PodDisruptionBudget"), place.now)
        case Evict():
            return left_together(act, found, place)
        case Status():
            return _status_effect(act, found)
        case Bind():
            return _bound(act, found, place)
        case Hold():
            return DONE
    return _edited(act, found)  # type: ignore[arg-type]  # all that is left


def _made(manifest: Object, place: ObjectStore) -> Effect:
    entry = api_server.entry(names.FIELD_MANAGER, "Apply", api_server.fields_of(manifest))
    made = {**manifest, "metadata": {**manifest["metadata"], "managedFields": [entry]}}
    if manifest["kind"] != "Pod":
        return (Write(made),)
    if why := refusal(manifest, place):
        return WriteResult("refused", f"the API server responded 403: {why}")
    return (Write(admitted({**made, "status": {"phase": "Pending"}}, place)),)


def _applied(act: Apply, found: Object) -> Effect:
    manifest = msgspec.json.decode(act.manifest)
    comparison = compare(whole(found), manifest)
    if not comparison.changes:
        return DONE
    if comparison.foreign and not act.force:
        return WriteResult("refused", conflict((each.manager, each.path) for each in comparison.foreign))
    if fixed := fixed_fields(found["kind"], comparison.paths):
        return WriteResult("refused", f"the API server responded 422: {fixed} is immutable")
    wished = comparison.merged
    texts = {key: wished["metadata"][key] for key in ("labels", "annotations")}
    after: Object = {**found, "metadata": {**found["metadata"], **texts}}
    if found["kind"] != "Pod":  # a Pod's spec is immutable, and the comparison does not cover all of it
        after = {key: after[key] for key in _APART} | {key: wished[key] for key in wished if key not in _APART}
    entries = found["metadata"].get("managedFields") or []
    ours = api_server.entry(names.FIELD_MANAGER, "Apply", api_server.fields_of(manifest))
    fields = api_server.applied(entries, ours, api_server.changed_fields(found, after))
    return (Write({**after, "metadata": {**after["metadata"], "managedFields": fields}}),)


def _edited(act: Editing, found: Object) -> Effect:
    edit = edit_of(act, found)
    if edit is None:
        return DONE
    if isinstance(act, Resize) and (why := _why_no_resize(found)):
        return WriteResult("refused", f"the API server responded 422: {why}")
    return (Write(edited_by(found, edit.patch, names.FIELD_MANAGER)),)


def edited_by(found: Object, patch: Object, manager: str) -> Object:
    """The result of a merge patch, with updated field ownership if it is tracked."""
    after: Object = merged(found, patch)
    entries = found["metadata"].get("managedFields")
    if not manager or entries is None or patch.keys() == {"status"}:  # ownership of status is not tracked
        return after
    fields = api_server.updated(entries, manager, api_server.changed_fields(found, after))
    return {**after, "metadata": {**after["metadata"], "managedFields": fields}}


def _why_no_resize(pod: Object) -> str:
    """A running container without reported resources cannot be resized."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    running = [
        each["name"] for each in statuses if "running" in (each.get("state") or {}) and not each.get("resources")
    ]
    return f"the resources of the running container {running[0]} are unknown" if running else ""


def _status_effect(act: Status, found: Object) -> Effect:
    status: dict[str, Any] = msgspec.json.decode(act.body)
    if is_published(found, status):
        return DONE
    before, set_before = found.get("status") or {}, said_before(found)
    entries = found["metadata"].get("managedFields") or []
    after = {key: value for key, value in before.items() if key not in set_before} | status
    fields: api_server.Tree = {"f:status": {f"f:{key}": {} for key in sorted(status)}}
    mine = api_server.entry(names.FIELD_MANAGER, "Apply", fields, "status")
    metadata = {**found["metadata"], "managedFields": api_server.applied(entries, mine, {})}
    return (Write({**found, "metadata": metadata, "status": after}),)


def _bound(act: Bind, pod: Object, place: ObjectStore) -> Effect:
    metadata = pod["metadata"]
    if settled := unbindable(act, ref_of(pod).title, pod):
        return settled
    node = place.get(Ref("Node", "", act.node))
    if node is None:
        return WriteResult("stale", f"Node/{act.node} no longer exists")
    leases: list[Write] = []
    for device in sorted(act.leases):
        ref = Ref("Lease", names.LEASES_NAMESPACE, device.name)
        held = place.get(ref)
        if held is None:
            leases.append(Write(new_lease(device, names.LEASES_NAMESPACE, pod, node)))
        elif (holder := text_at(held, HELD)) != pod["metadata"]["uid"]:
            return WriteResult("stale", lent_to_another(ref.title, holder))
        else:
            leases.append(Write(edited_by(held, adopted_lease(held), names.FIELD_MANAGER)))
    annotations = {**annotations_of(pod), **dict(act.annotations)}
    spec = {**(pod.get("spec") or {}), "nodeName": act.node}
    status = {
        **(pod.get("status") or {}),
        "conditions": with_condition(pod, condition("PodScheduled", "True", place.now)),
    }
    bound = {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec, "status": status}
    return (*leases, Write(bound))
