"""Preconditions of a write, checked before the write is sent; the API server checks them again."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod, is_stuck
from reconciler.model.instant import Instant
from reconciler.model.manifest_rules import why_not_applied
from reconciler.model.plan.decision import Apply, Bind, Decision, Delete, Evict, LentDevice, Preconditions, Ref, Result

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")

Object = dict[str, Any]


class WriteResult(msgspec.Struct, frozen=True):
    """Result of a write that is not sent."""

    result: Result
    detail: str = ""


DONE = WriteResult("done")
NO_LONGER_OURS = WriteResult("stale", "the leadership term has expired: the new leader makes a new plan")


def identified(decision: Decision, found: Object | None) -> WriteResult | None:
    """Result if the object does not exist or has another uid; None if it is the expected object."""
    subject = decision.subject
    is_meant = found is not None and subject.uid in {"", found["metadata"].get("uid", "")}
    if isinstance(decision.act, Delete | Evict):
        is_going = found is None or not is_meant or found["metadata"].get("deletionTimestamp")
        return DONE if is_going else None
    if found is None:
        return WriteResult("stale", f"{subject.title} does not exist any more")
    return (
        None if is_meant else WriteResult("stale", f"{subject.title} was replaced by another object with the same name")
    )


def presumed(decision: Decision, found: Object) -> WriteResult | None:
    """Result if a precondition does not hold; None if all hold."""
    presumes, title = decision.act.presumes, decision.subject.title  # type: ignore[union-attr]  # a hold is no write
    if presumes.absent:
        return WriteResult("stale", f"{title} already exists")
    if presumes.resource_version not in {"", found["metadata"].get("resourceVersion", "")}:
        return WriteResult("stale", f"{title} has changed since the snapshot")
    borne = {each["key"] for each in (found.get("spec") or {}).get("taints") or ()} if presumes.untainted else set()
    if taken := sorted(borne.intersection(presumes.untainted)):
        return WriteResult("stale", f"{title} has {taken[0]} now")
    for path, value in presumes.fields:
        stands = text_at(found, path)
        if stands != value:
            return WriteResult("stale", f'{title} was expected to have "{value}" in {path}, but has "{stands}"')
    return None


def text_at(found: Object, path: str) -> str:
    """Value at a path such as spec.nodeName or metadata.labels[gpu.scheduling/pool]; empty if absent."""
    value: Any = found
    for key, word in _STEP.findall(path):
        value = value.get(key or word) if isinstance(value, dict) else None
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


# --- Whether a node is empty as expected, by the pods bound to it now.


def occupied(node: Node, pods: Iterable[Pod], presumes: Preconditions, now: Instant) -> WriteResult | None:
    """Result if a pod occupies the node; None otherwise. Pods that outlive a drain do not count."""
    longest = presumes.longest_grace_seconds
    counting = sorted(pod.title for pod in pods if pod.counts and not is_stuck(pod, node, now, longest))
    if not counting:
        return None
    others = f" and {len(counting) - 1} more" if len(counting) > 1 else ""
    return WriteResult("stale", f"Node/{node.name} was expected to be empty, but has Pod/{counting[0]}{others}")


# --- Pods that must be evicted together: all of them must exist before the first is evicted.


def leaves(ref: Ref, found: Object | None) -> bool:
    """Whether no eviction is needed: the pod is deleted, terminating, or replaced by another with its name."""
    if found is None or found["metadata"].get("deletionTimestamp"):
        return True
    return ref.uid not in {"", found["metadata"].get("uid", "")}


def no_longer_whole(ref: Ref) -> WriteResult:
    """Result if a pod of the group is leaving before any was evicted: the plan assumed all of them."""
    return WriteResult("stale", f"{ref.title} is already leaving, but must be evicted together with others")


def not_gone(pod: Ref, found: Object | None) -> WriteResult | None:
    """Result if a pod must be gone and is not; None if the pod is gone or finished."""
    if found is None or found["metadata"]["uid"] != pod.uid:
        return None
    if (found.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return None
    return WriteResult("stale", f"{pod.title} exists")


# --- A Binding: Leases that lend GPUs to a pod, and conditions of a pod to be bound.
#
# The holder of a Lease is the pod's uid, and its owner is the Node, so that it is deleted with the Node.

HELD = "spec.holderIdentity"


def new_lease(device: LentDevice, namespace: str, pod: Object, node: Object) -> Object:
    """The Lease to create."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
    of_pod = pod["metadata"]
    annotations = {
        names.DEVICE: str(device.device),
        names.DEVICE_UUID: device.uuid,
        names.CLAIM: (of_pod.get("annotations") or {}).get(names.CLAIM, ""),
        names.HOLDER: f"{of_pod.get('namespace', '')}/{of_pod['name']}",
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": device.name,
            "namespace": namespace,
            "labels": {names.MANAGED: "true"},
            "annotations": {key: value for key, value in annotations.items() if value},
            "ownerReferences": [owner],
        },
        "spec": {"holderIdentity": of_pod["uid"], "leaseTransitions": 0},
    }


def adopted_lease(found: Object) -> Object:
    """Merge patch of a Lease that the pod holds already: gives the Lease another version, so that nobody deletes the
    Lease who read the earlier version.
    """
    transitions = (found.get("spec") or {}).get("leaseTransitions") or 0
    version = found["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version}, "spec": {"leaseTransitions": transitions + 1}}


def node_of(pod: Object) -> str:
    """The node that the pod is bound to; empty for a pod that is not bound."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def lent_to_another(title: str, holder: str) -> str:
    """Why nothing is bound."""
    return f"{title} is already held by {holder or 'an unknown holder'}"


def unbindable(act: Bind, title: str, pod: Object) -> WriteResult | None:
    """Result without a Binding; None if the pod may be bound."""
    spec = pod.get("spec") or {}
    if node := node_of(pod):
        return DONE if node == act.node else WriteResult("stale", f"{title} is already bound to {node}")
    if gates := [str(each["name"]) for each in spec.get("schedulingGates") or ()]:
        return WriteResult("stale", f"{title} has scheduling gates: {', '.join(gates)}")
    return None


# --- Whether a manifest may be applied, checked again before it is sent, whatever the origin of the plan.
#
# Policies are checked when they are read. A saved plan, a custom resource or a bug could contain a manifest that no
# template may render.


def why_unapplied(decision: Decision) -> WriteResult | None:
    """Result without a write; None if the manifest is for its subject and may be applied."""
    act, subject = decision.act, decision.subject
    if not isinstance(act, Apply):
        return None
    if why := why_not_applied(act.manifest):
        return WriteResult("refused", f"{subject.title} is not applied: {why}")
    manifest = msgspec.json.decode(act.manifest)
    metadata = manifest["metadata"]
    if (manifest["kind"], metadata.get("namespace", ""), metadata.get("name")) != (
        subject.kind,
        subject.namespace,
        subject.name,
    ):
        return WriteResult("refused", f"{subject.title} is not applied: the manifest is for another object")
    return None


# --- Whether the status of one of our objects is up to date.


def is_published(found: Object, status: Object) -> bool:
    """Whether all fields of the status are set, ignoring defaults of the API server, and no field that we set before is
    left over."""
    return _contains(found.get("status") or {}, status) and said_before(found) <= status.keys()


def said_before(found: Object) -> set[str]:
    """Fields of the status that we set."""
    entries = found["metadata"].get("managedFields") or ()
    ours = [
        each.get("fieldsV1", {}).get("f:status", {})
        for each in entries
        if each.get("manager") == names.FIELD_MANAGER and each.get("subresource") == "status"
    ]
    return {key.removeprefix("f:") for fields in ours for key in fields if key.startswith("f:")}


def _contains(found: Any, wished: Any) -> bool:
    if isinstance(wished, dict):
        return isinstance(found, dict) and all(_contains(found.get(key), each) for key, each in wished.items())
    if isinstance(wished, list):
        is_list = isinstance(found, list) and len(found) == len(wished)
        return is_list and all(_contains(*each) for each in zip(found, wished, strict=True))
    return bool(found == wished)
