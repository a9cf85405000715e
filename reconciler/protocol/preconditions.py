"""Whether an object is still as a decision presumes; asked before a write, which the API server then checks again."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod, is_stuck
from reconciler.model.instant import Instant
from reconciler.model.manifest_rules.kinds import why_not_applied
from reconciler.model.plan.decision import Apply, Bind, Decision, Delete, Evict, Preconditions, Ref, Result

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")

Object = dict[str, Any]


class WriteResult(msgspec.Struct, frozen=True):
    """There is nothing to send any more."""

    result: Result
    detail: str = ""


DONE = WriteResult("done")
NO_LONGER_OURS = WriteResult("stale", "the right to write has run out meanwhile: whoever has it now plans anew")


def identified(decision: Decision, found: Object | None) -> WriteResult | None:
    """How it ends where the object is not there, or another has its name; None where it is the one that is meant."""
    subject = decision.subject
    is_meant = found is not None and subject.uid in {"", found["metadata"].get("uid", "")}
    if isinstance(decision.act, Delete | Evict):
        is_going = found is None or not is_meant or found["metadata"].get("deletionTimestamp")
        return DONE if is_going else None
    if found is None:
        return WriteResult("stale", f"{subject.title} is not there any more")
    return (
        None
        if is_meant
        else WriteResult("stale", f"{subject.title} is another one by now: the one that was meant is gone")
    )


def presumed(decision: Decision, found: Object) -> WriteResult | None:
    """How it ends where something else stands than was presumed; None where all of it stands."""
    presumes, title = decision.act.presumes, decision.subject.title  # type: ignore[union-attr]  # a hold is no write
    if presumes.absent:
        return WriteResult("stale", f"{title} is there already")
    if presumes.resource_version not in {"", found["metadata"].get("resourceVersion", "")}:
        return WriteResult("stale", f"{title} has changed since it was looked at")
    borne = {each["key"] for each in (found.get("spec") or {}).get("taints") or ()} if presumes.untainted else set()
    if taken := sorted(borne.intersection(presumes.untainted)):
        return WriteResult("stale", f"{title} bears {taken[0]} by now")
    for path, value in presumes.fields:
        stands = text_at(found, path)
        if stands != value:
            return WriteResult("stale", f'{title} was to have "{value}" in {path}, and has "{stands}"')
    return None


def text_at(found: Object, path: str) -> str:
    """What stands at spec.nodeName or metadata.labels[gpu.scheduling/pool]; nothing where nothing does."""
    value: Any = found
    for key, word in _STEP.findall(path):
        value = value.get(key or word) if isinstance(value, dict) else None
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


# --- Whether a node is as empty as a decision presumes, by the pods that are bound to it now.


def occupied(node: Node, pods: Iterable[Pod], presumes: Preconditions, now: Instant) -> WriteResult | None:
    """How it ends where some pod counts; None where none does. Pods that nobody will end do not count."""
    longest = presumes.longest_grace_seconds
    counting = sorted(pod.title for pod in pods if pod.counts and not is_stuck(pod, node, now, longest))
    if not counting:
        return None
    others = f" and {len(counting) - 1} more" if len(counting) > 1 else ""
    return WriteResult("stale", f"Node/{node.name} was to be empty, and Pod/{counting[0]}{others} came to it")


# --- Pods that leave together or not at all: whether all of them are there still, asked before any is asked to leave.


def leaves(ref: Ref, found: Object | None) -> bool:
    """Whether there is nobody to ask: it is gone, on its way, or another has its name."""
    if found is None or found["metadata"].get("deletionTimestamp"):
        return True
    return ref.uid not in {"", found["metadata"].get("uid", "")}


def no_longer_whole(ref: Ref) -> WriteResult:
    """How it ends where one has left before any was asked: whoever planned it knew of all."""
    return WriteResult("stale", f"{ref.title} leaves already, and was to leave together with others")


# --- What goes with a Binding: Leases by which GPUs are lent to a pod, and what a pod must be like to be bound.
#
# A Lease is held by the pod's uid, and owned by the Node, so that it goes when the Node does.

HELD = "spec.holderIdentity"


def lease(name: str, namespace: str, pod: Object, node: Object) -> Object:
    """As it is made."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
        "spec": {"holderIdentity": pod["metadata"]["uid"]},
    }


def lent_to_another(title: str, holder: str) -> str:
    """Why nothing is bound."""
    return f"{title} is held by {holder or 'nobody that is named'} already"


def unbindable(act: Bind, title: str, pod: Object) -> WriteResult | None:
    """How it ends without a Binding; None where there is to be one."""
    spec = pod.get("spec") or {}
    node = spec.get("nodeName", "")
    if node:
        return DONE if node == act.node else WriteResult("stale", f"{title} is bound to {node} already")
    if gates := [str(each["name"]) for each in spec.get("schedulingGates") or ()]:
        return WriteResult("stale", f"{title} waits behind scheduling gates: {', '.join(gates)}")
    return None


# --- Whether a manifest may be applied at all: asked again before it is sent, whoever the plan comes from.
#
# Policies are checked when they are read. A saved plan, a custom resource or a fault of ours could bring a manifest
# that no template may yield.


def why_unapplied(decision: Decision) -> WriteResult | None:
    """How it ends without a write; None where the manifest is of its subject, and may be applied."""
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
        return WriteResult("refused", f"{subject.title} is not applied: the manifest is of another object")
    return None


# --- Whether the status of one of our objects says already what it is to say.


def is_published(found: Object, status: Object) -> bool:
    """All of it stands, beside what the API server fills in; and nothing does that we said before and no longer say."""
    return _contains(found.get("status") or {}, status) and said_before(found) <= status.keys()


def said_before(found: Object) -> set[str]:
    """The fields of its status that we set."""
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
