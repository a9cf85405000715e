"""The fleet that `make lab` shows: NodePools that somebody made by hand, and nodes bought for its pods."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tests.lab import capacity, fleet
from tests.lab.api import Manifest
from tests.lab.identities import TENANT_NAMESPACE
from tests.lab.lab import Lab

TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
TRAINING = capacity.NodePool("a100-training", [capacity.P4D], labels={"team": "research"}, taints=[TAINT])
INFERENCE = capacity.NodePool("l4-inference", [capacity.G6], ["spot", "on-demand"], taints=[TAINT])
JOBS = tuple(f"train-job-{number}" for number in range(5))
ENDED_JOBS = tuple(f"train-job-{number}" for number in range(5, 8))
REPLICAS = tuple(f"chat-{number}" for number in range(4))

_POOL = "karpenter.sh/nodepool"
# What the GPU feature discovery, which the lab has not, would write on the nodes of each.
_DISCOVERED = {
    TRAINING.name: {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960"},
    INFERENCE.name: {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "24576"},
}


def load_demo_fleet(lab: Lab) -> None:
    """Twelve GPU nodes: eight for training, five of them busy, and four for inference, each half used."""
    for pool in (TRAINING, INFERENCE):
        lab.admin.apply(pool.manifest(), owner="kubectl")
    lab.admin.apply(_node_agent())
    nodes = {}
    for pod in _running(lab, [*map(_job, (*JOBS, *ENDED_JOBS)), *map(_replica, REPLICAS)]):
        nodes[pod["spec"]["nodeName"]] = _DISCOVERED[pod["spec"]["nodeSelector"][_POOL]]
    for name, labels in nodes.items():
        lab.admin.merge(lab.admin.path("nodes", name), {"metadata": {"labels": labels}})
        lab.admin.wait_for("nodes", name, fleet.is_ready)
    for name in ENDED_JOBS:
        lab.admin.delete("pods", name, TENANT_NAMESPACE)
    for name in ENDED_JOBS:
        lab.admin.wait_for("pods", name, lambda pod: pod is None, TENANT_NAMESPACE)
    for claim in lab.admin.list("nodeclaims"):
        lab.admin.wait_for("nodeclaims", claim["metadata"]["name"], fleet.is_initialized)
    kept = [*map(_job, JOBS), *map(_replica, REPLICAS)]
    for pod in kept:  # once the nodes are settled; one may have vanished after it ran
        _runs(lab, pod)


def _running(lab: Lab, pods: Sequence[Manifest]) -> Iterator[Manifest]:
    """Pods as they run. One that vanishes is made again, as its controller would.

    The controller that evicts for taints may see a pod bound before it sees that the new node lost Karpenter's
    `unregistered:NoExecute`, and then deletes the pod.
    """
    lab.load(pods)
    for pod in pods:
        yield _runs(lab, pod)


def _runs(lab: Lab, pod: Manifest) -> Manifest:
    return lab.admin.wait_for("pods", pod["metadata"]["name"], partial(_runs_or_again, lab, pod), TENANT_NAMESPACE)


def _runs_or_again(lab: Lab, pod: Manifest, found: Manifest | None) -> bool:
    if found is None:
        lab.load([pod])
    return fleet.is_running(found)


def _node_agent() -> Manifest:
    """What every cluster has on each node."""
    labels = {"app": "node-agent"}
    pod = fleet.Pod("node-agent", "kube-system", labels=labels).with_spec(tolerations=[{"operator": "Exists"}])
    template = {"metadata": {"labels": labels}, "spec": pod.manifest()["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def _job(name: str) -> Manifest:
    """All of a node; those that have ended leave theirs behind, empty."""
    return _pod(fleet.Pod(name, TENANT_NAMESPACE, gpus=8, cpu="64"), TRAINING.name, {})


def _replica(name: str) -> Manifest:
    """Half of a node, and no two of them on one."""
    label = {"app": "chat"}
    apart = {"labelSelector": {"matchLabels": label}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    pod = fleet.Pod(name, TENANT_NAMESPACE, gpus=2, cpu="8", labels=label)
    return _pod(pod, INFERENCE.name, {"affinity": affinity})


def _pod(pod: fleet.Pod, pool: str, more: Mapping[str, Any]) -> Manifest:
    return pod.tolerating(TAINT["key"]).with_spec(nodeSelector={_POOL: pool}, **more).manifest()
