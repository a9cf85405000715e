"""Owners that pods name and nobody has read, made up: what such an owner lost, it would make anew.

What kubectl was asked for may lack Jobs or ReplicaSets, and kinds of operators are never read. A Job is made up as one;
anything else as a ReplicaSet, and its pods say so then. DaemonSets are left out: their pods come and go with nodes.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.protocol.presumed import Object

_VERSIONS = {"Job": "batch/v1", "ReplicaSet": "apps/v1"}
_OF_NODES = frozenset({"DaemonSet", "Node"})
_OF_ONE_POD = frozenset({"nodeName"})

_Owner = tuple[str, str, str]  # kind, namespace, name


class UnreadOwners:
    """Of the pods of a cluster that was seen."""

    def __init__(self, observed: Observed) -> None:
        self._known = {(each.kind, each.metadata.namespace, each.metadata.name) for each in observed.workloads}
        self._pods: dict[_Owner, list[Pod]] = {}
        for pod in sorted(observed.pods, key=lambda each: (each.metadata.namespace, each.name)):
            if (owner := self._owner_of(pod)) is not None:
                self._pods.setdefault(owner, []).append(pod)

    def made_up(self) -> Iterator[Object]:
        """Those that have pods still, in the order of their names."""
        for owner, pods in sorted(self._pods.items(), key=lambda each: each[0]):
            active = [each for each in pods if not each.is_finished]
            if active:
                yield _made_up(owner, active, len(pods) - len(active))

    def told(self, body: Object, pod: Pod) -> Object:
        """The pod, which says of what kind its owner was made up."""
        owner = self._owner_of(pod)
        if owner is None:
            return body
        made = {"apiVersion": _VERSIONS[_kind(owner)], "kind": _kind(owner)}
        references = [each | made if each.get("controller") else each for each in body["metadata"]["ownerReferences"]]
        return {**body, "metadata": {**body["metadata"], "ownerReferences": references}}

    def _owner_of(self, pod: Pod) -> _Owner | None:
        owner = pod.metadata.controller
        if owner is None or owner.kind in _OF_NODES:
            return None
        found = owner.kind, pod.metadata.namespace, owner.name
        return None if found in self._known else found


def template_of(pod: Pod) -> Object:
    """What a pod was made of, as far as it tells."""
    plain: Object = msgspec.to_builtins(pod)
    metadata: Object = {key: plain["metadata"].get(key) or {} for key in ("labels", "annotations")}
    spec = {key: value for key, value in plain.get("spec", {}).items() if key not in _OF_ONE_POD}
    return {"metadata": metadata, "spec": spec}


def _made_up(owner: _Owner, active: Sequence[Pod], done: int) -> Object:
    kind, (_, namespace, name) = _kind(owner), owner
    reference = active[0].metadata.controller
    uid = {"uid": reference.uid} if reference is not None and reference.uid else {}
    counts = {"parallelism": len(active), "completions": len(active) + done}
    spec: Object = counts if kind == "Job" else {"replicas": len(active)}
    return {
        "apiVersion": _VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, **uid},
        "spec": {**spec, "template": template_of(active[0])},
    }


def _kind(owner: _Owner) -> str:
    return "Job" if owner[0] == "Job" else "ReplicaSet"
