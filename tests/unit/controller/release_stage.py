"""A cluster of other people's on which we have left our marks, for what takes them off again."""

import json
from typing import Any

from reconciler.model.plan.decision import Ref
from reconciler.simulate.world import World

Object = dict[str, Any]

NODE_POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "a100", "labels": {"gpu.scheduling/managed": "true", "gpu.scheduling/pool": "a100"}},
    "spec": {
        "template": {
            "metadata": {"labels": {"gpu.scheduling/pool": "a100", "team": "research"}},
            "spec": {
                "taints": [{"key": "gpu.scheduling/reserved", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "gpu.scheduling/arriving", "effect": "NoSchedule"}],
            },
        }
    },
}
FOREIGN_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
LASTING_TAINT = {"key": "gpu.scheduling/reserved", "effect": "NoSchedule"}
OURS = [
    {"key": "gpu.scheduling/deletion-time", "value": "1795013520", "effect": "PreferNoSchedule"},
    {"key": "gpu.scheduling/arriving", "effect": "NoSchedule"},
]
POOL_LABELS = {"karpenter.sh/nodepool": "a100", "gpu.scheduling/pool": "a100", "team": "research"}


def node(name: str, marked: bool = True, labels: dict[str, str] | None = None) -> Object:
    """A node of a pool; marked, with all that we may have put on it."""
    marks = {"gpu.scheduling/provisioner": "a100", "gpu.scheduling/gpu-type": "a100"} if marked else {}
    freeze = {"gpu.scheduling/frozen-until": "2026-11-02T08:00:00Z", "gpu.scheduling/frozen-reason": "x"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**(POOL_LABELS if labels is None else labels), **marks},
            "annotations": {"theirs": "1", **(freeze if marked else {})},
        },
        "spec": {"taints": [FOREIGN_TAINT, LASTING_TAINT, *(OURS if marked else [])]},
    }


def pod(
    name: str, *gates: str, labels: dict[str, str] | None = None, priority: str = "", namespace: str = "team"
) -> Object:
    spec = {"containers": [{"name": "main", "image": "x"}], "schedulingGates": [{"name": each} for each in gates]}
    if priority:
        spec["priorityClassName"] = priority  # type: ignore[assignment]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": labels or {}},
        "spec": spec,
    }


def kept(kind: str, api_version: str, name: str, namespace: str = "", **more: Any) -> Object:
    """What a template yielded, as we keep it."""
    labels = {"gpu.scheduling/managed": "true", "gpu.scheduling/pool": "a100"}
    metadata = {"name": name, "labels": labels} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def world(*objects: Object) -> World:
    made = World()
    for each in objects:
        made.put(each)
    return made


def said(found: World, ref: Ref) -> Object | None:
    """An object without what each write changes."""
    there = found.get(ref)
    if there is None:
        return None
    plain: Object = json.loads(json.dumps(there))
    for key in ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"):
        plain["metadata"].pop(key, None)
    return plain
