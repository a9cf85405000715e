"""Owners that pods name and nobody has read, made up: what such an owner lost, it would make anew.

What kubectl was asked for may lack Jobs or ReplicaSets, and kinds of operators are never read. A Job is made up as one;
anything else as a ReplicaSet, and its pods say so then. Those of an operator's kind say as well that they are not safe
to evict, unless they say that they are: a drain leaves them where they are. DaemonSets are left out: their pods come
and go with nodes. Nor is an owner made up that a complete list of its kind lacks: it does not exist, and nobody makes
its pods anew.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.plan.drain.blockers import custom_controller
from reconciler.plan.drain.nodes.controllers import Controllers
from reconciler.protocol.preconditions import Object

_VERSIONS = {"Job": "batch/v1", "ReplicaSet": "apps/v1"}
_OF_NODES = frozenset({"DaemonSet", "Node"})
_OF_ONE_POD = frozenset({"nodeName"})

_Owner = tuple[str, str, str]  # kind, namespace, name


class UnreadOwners:
    """Of the pods of a cluster that was seen."""

    def __init__(self, observed: Observed) -> None:
        self._known = {(each.kind, each.metadata.namespace, each.metadata.name) for each in observed.workloads}
        self._controllers = Controllers(observed)
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

    def with_owner_note(self, body: Object, pod: Pod) -> Object:
        """The pod, which says of what kind its owner was made up."""
        owner = self._owner_of(pod)
        if owner is None:
            return body
        made = {"apiVersion": _VERSIONS[_kind(owner)], "kind": _kind(owner)}
        references = [each | made if each.get("controller") else each for each in body["metadata"]["ownerReferences"]]
        return {**body, "metadata": _kept(pod, {**body["metadata"], "ownerReferences": references})}

    def _owner_of(self, pod: Pod) -> _Owner | None:
        owner = pod.metadata.controller
        if owner is None or owner.kind in _OF_NODES:
            return None
        if self._controllers.is_gone(pod.metadata.namespace, owner):
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
    kind, (_, namespace, name), template = _kind(owner), owner, template_of(active[0])
    reference = active[0].metadata.controller
    uid = {"uid": reference.uid} if reference is not None and reference.uid else {}
    counts = {"parallelism": len(active), "completions": len(active) + done}
    spec: Object = counts if kind == "Job" else {"replicas": len(active)}
    return {
        "apiVersion": _VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, **uid},
        "spec": {**spec, "template": {**template, "metadata": _kept(active[0], template["metadata"])}},
    }


def _kept(pod: Pod, metadata: Object) -> Object:
    """What is made up hides of what kind its controller is, by which a drain would go."""
    if custom_controller(pod) is None or pod.metadata.annotations.safe_to_evict == "true":
        return metadata
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), names.SAFE_TO_EVICT: "false"}}


def _kind(owner: _Owner) -> str:
    return "Job" if owner[0] == "Job" else "ReplicaSet"
