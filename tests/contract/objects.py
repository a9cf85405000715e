"""What others have in the cluster: each with a label, a taint or a field of theirs that must survive."""

from typing import Any

from tests.lab import capacity, fleet

Object = dict[str, Any]

THEIRS = {"example.com/team": "search"}
THEIR_TAINT = {"key": "example.com/dedicated", "value": "search", "effect": "NoSchedule"}


def node(name: str) -> Object:
    shape = fleet.Shape(labels=THEIRS, annotations=THEIRS, taints=[THEIR_TAINT])
    return shape.node(name, "eu-1a")


def soft(name: str) -> Object:
    """It bears a taint of ours that does not keep pods away yet."""
    ours = {"key": "gpu.scheduling/draining", "value": "1795013520", "effect": "PreferNoSchedule"}
    return fleet.Shape(labels=THEIRS, annotations=THEIRS, taints=[THEIR_TAINT, ours]).node(name, "eu-1a")


def pod(name: str) -> fleet.Pod:
    """Never scheduled by anybody."""
    return fleet.Pod(name, labels={**THEIRS, "app": name}, annotations=THEIRS).unseen()


def waiting(name: str) -> Object:
    return pod(name).manifest()


def gated(name: str) -> Object:
    return pod(name).gated("example.com/quota", "gpu.scheduling/claim").manifest()


def running(name: str) -> Object:
    """On a node that has no kubelet, which says so itself."""
    ready = [{"type": "Ready", "status": "True"}]
    return {**pod(name).on(f"{name}-node").manifest(), "status": {"phase": "Running", "conditions": ready}}


def mate(name: str) -> Object:
    """Of the same gang."""
    return running(f"{name}-mate")


def finished(name: str, node: str) -> Object:
    """On a node, and done."""
    return {**pod(name).on(node).manifest(), "status": {"phase": "Succeeded"}}


def daemon(name: str, node: str) -> Object:
    """One that comes and goes with its node."""
    manifest = pod(name).on(node).manifest()
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "exporter", "uid": "4f1c", "controller": True}
    manifest["metadata"]["ownerReferences"] = [owner]
    return manifest


def node_pool(name: str, **labels: str) -> Object:
    manifest = capacity.NodePool(name, [capacity.P4D]).manifest()
    manifest["metadata"]["labels"] = {**THEIRS, **labels}
    manifest["spec"]["limits"] = {"cpu": "1000"}
    return manifest


def priority(name: str) -> Object:
    """Of ours, with a label of theirs: no other is deleted."""
    labels = {**THEIRS, "gpu.scheduling/managed": "true"}
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name, "labels": labels}}
    return {**head, "value": -7, "description": "theirs"}


def gpu_pool(name: str) -> Object:
    spec = {
        "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
        "instanceTypes": [{"name": "p4d.24xlarge"}],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
    }
    head = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuPool", "metadata": {"name": name, "labels": THEIRS}}
    return {**head, "spec": spec}


def budget(name: str, app: str, healthy: int = 1) -> Object:
    """One pod of the application must stay."""
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": healthy - 1,
        "currentHealthy": healthy,
        "desiredHealthy": 1,
        "expectedPods": healthy,
    }
    return {**head, "metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": status}
