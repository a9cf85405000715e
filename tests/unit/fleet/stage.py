"""Small fleets, from the compact words of tests/cases/fleet/nodes.yaml."""

from typing import Any

import msgspec

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

Words = dict[str, Any]

ROOM = {"cpu": "10", "memory": "64Gi", "pods": "110"}
_FIELDS = frozenset(
    {"nodeSelector", "tolerations", "nodeName", "initContainers", "hostNetwork", "hostUsers", "priority"}
    | {"topologySpreadConstraints", "overhead", "resources"}
)
_OTHERS = frozenset({"owner", "ports", "affinity", "apart", "status", "leaving", "labels"})


def node(name: str, words: Words) -> Node:
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": words.get("labels", {})},
            "spec": {"taints": words.get("taints", []), "unschedulable": words.get("cordoned", False)},
            "status": {"allocatable": texts(words.get("has", ROOM))},
        },
        Node,
    )


def pod(name: str, words: Words) -> Pod:
    """What is no field of a spec is a resource that its one container asks for; `affinity` is terms about nodes."""
    asked = {key: value for key, value in words.items() if key not in _FIELDS | _OTHERS}
    container = {"name": "main", "resources": {"requests": texts(asked)}, "ports": words.get("ports", [])}
    spec: Words = {key: words[key] for key in words if key in _FIELDS} | {"containers": [container]}
    affinity: Words = {}
    if "affinity" in words:
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": words["affinity"]}}
        affinity["nodeAffinity"] = terms
    if "apart" in words:
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": words["apart"]}
    leaving = {"deletionTimestamp": "2026-11-18T12:00:00Z"} if words.get("leaving") else {}
    owned: Words = {}
    if "owner" in words:
        owned["ownerReferences"] = [{"kind": words["owner"], "name": "o", "uid": "uid-o", "controller": True}]
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": words.get("labels", {}),
        **leaving,
        **owned,
    }
    spec |= {"affinity": affinity} if affinity else {}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": words.get("status", {})}, Pod)


def texts(amounts: Words) -> dict[str, str]:
    return {key: str(value) for key, value in amounts.items()}


def what_if(case: Words) -> Snapshot:
    """The one node of a case, with what is there."""
    there = [pod(f"p{number}", each | {"nodeName": "n1"}) for number, each in enumerate(case.get("there", ()))]
    return Snapshot(Observed(nodes=(node("n1", case),), pods=tuple(there)))
