"""The live cluster: snapshots and writes of the loop, and writes of users."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.kube.api_server import (
    JSON,
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    Writer,
    WrittenObject,
    below,
    folder,
    folder_in,
)
from reconciler.kube.apply.execute import Executor
from reconciler.kube.watch.changes import said
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Outcome
from reconciler.model.policy.guards import ChangeApproval
from reconciler.plan.guards.approvals import INSTALL
from reconciler.ports import Fence


class LiveCluster:
    """Observed state, from an Observer or a list of the cluster, and writes with one identity."""

    def __init__(self, observe: Callable[[], Observed], applying: Executor) -> None:
        self._observe = observe
        self._applying = applying
        self._seen_at: Instant | None = None

    def observe(self) -> Observed:
        observed = self._observe()
        self._seen_at = observed.seen_at or None
        return observed

    def seen_at(self) -> Instant | None:
        """Time of the last observation; thread-safe."""
        return self._seen_at

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        return self._applying.apply(decisions, fence)


# --- Writes of users with their own rights: freeze annotations and approvals, one object at a time.


class NotWritten(Exception):
    """The API server refused the write; the message contains the remedy."""


class ObjectPath(msgspec.Struct, frozen=True):
    title: str
    path: str


_OURS = "gpu.scheduling"
_APPROVALS = folder(_OURS, "changeapprovals")
_MANAGER = {"fieldManager": "reconciler-by-hand"}


def places_of(kind: str, name: str) -> tuple[ObjectPath, ...]:
    """Objects that may carry the freeze annotation, preferred first. Raises BadPath."""
    found = {
        "node": (("Node", "", "nodes"),),
        "pool": (("GpuPool", _OURS, "gpupools"), ("NodePool", "karpenter.sh", "nodepools")),
        "guard": (("ChangeGuard", _OURS, "changeguards"),),
        "all": (("Namespace", "", "namespaces"),),
    }
    return tuple(
        ObjectPath(f"{title}/{name}", below(folder(group, plural), name)) for title, group, plural in found[kind]
    )


def annotate(
    server: Writer, places: Sequence[ObjectPath], annotations: Mapping[str, str | None], *, everywhere: bool = False
) -> tuple[str, ...]:
    """Annotates the first existing object, or all of them; returns their titles. Raises NotWritten, Unreachable."""
    body = msgspec.json.encode({"metadata": {"annotations": annotations}})
    written = []
    for place in places:
        answer = server.send(ApiRequest("PATCH", place.path, body, MERGE_PATCH, _MANAGER))
        if answer.status == 404:
            continue
        if answer.status != 200:
            raise _refused(answer, f"annotate {place.title}", "freezer")
        written.append(place.title)
        if not everywhere:
            break
    if not written:
        raise NotWritten(f"there is no {' and no '.join(place.title for place in places)} in this cluster")
    return tuple(written)


def is_without_controller(server: Writer, namespace: str) -> bool:
    """Whether no controller leads or ever led from the namespace. Raises Unreachable."""
    return server.get(below(folder_in(namespace, "coordination.k8s.io", "leases"), names.LEADER_LEASE)).status == 404


def approval_manifest(spec: ChangeApproval) -> dict[str, Any]:
    """The manifest for creation; the API server generates the name."""
    return {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "ChangeApproval",
        "metadata": {"generateName": f"{spec.guard_name or 'prune'}-"},
        "spec": _without_empty(msgspec.to_builtins(spec)),
    }


def approve(server: Writer, spec: ChangeApproval) -> str:
    """Creates an approval and returns its name; earlier approvals stay. Raises NotWritten, Unreachable."""
    body = msgspec.json.encode(approval_manifest(spec))
    answer = server.send(ApiRequest("POST", _APPROVALS, body, JSON, _MANAGER))
    if answer.status == 404:
        raise NotWritten(f"this cluster has no CRD for ChangeApproval\n  remedy: {INSTALL}")
    if answer.status == 422:  # an older CRD, which requires a revision
        raise NotWritten(f"the cluster's CRD refuses the approval ({said(answer)})\n  remedy: update it: {INSTALL}")
    if answer.status != 201:
        raise _refused(answer, "make a ChangeApproval", "approver")
    return msgspec.json.decode(answer.body, type=WrittenObject).metadata.name


def _without_empty(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {
        key: stripped for key, each in value.items() if (stripped := _without_empty(each)) not in (None, "", [], {})
    }


def _refused(answer: ApiResponse, what: str, person: str) -> NotWritten:
    hint = f"; `reconciler rbac --person {person}` prints the required rights" if answer.status == 403 else ""
    return NotWritten(f"may not {what} ({said(answer)}){hint}")
