"""NodePools with their nodes, pods and budgets, put together from the compact words of tests/cases/karpenter."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.quantity import Duration, Money, Quantity
from reconciler.plan.karpenter.disruption_forecast import Surroundings
from reconciler.plan.karpenter.drift import Drift
from reconciler.plan.nodes.eviction import PodBudgets

Words = dict[str, Any]
NOW = instant("2026-11-18T12:00:00Z")
POOL = "p"
PLAIN_BUDGETS = [{"nodes": "0", "reasons": ["Empty", "Underutilized"]}, {"nodes": "10%", "reasons": ["Drifted"]}]
A100 = {"p4d.24xlarge": {"reserved": "14.75", "on-demand": "21.96"}}

_OWNERS = {"daemon": "DaemonSet", "static": "Node"}


def gpu_pool(words: Words) -> GpuPool:
    """A GpuPool with `types` and their prices, `committed` nodes and `capacity_types`."""
    return GpuPool(
        devices=Devices(model="a100", count=8, memory=Quantity.parse("40Gi")),
        instance_types=[
            InstanceType(name=name, price_per_hour={sort: Money.parse(price) for sort, price in prices.items()})
            for name, prices in words.get("types", A100).items()
        ],
        capacity_types=words.get("capacity_types", ["reserved", "on-demand"]),
        committed_nodes=words.get("committed", 0),
        node_class_ref=NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default"),
    )


def node_pool(spec: Words) -> Unstructured:
    return Unstructured("karpenter.sh/v1", "NodePool", UnstructuredMetadata(name=POOL), {"spec": spec})


def spec_of(case: Words, field: str) -> Words | None:
    """The NodePool's spec, with the budgets of that field; None where it is deleted."""
    budgets = case.get(field, PLAIN_BUDGETS)
    if budgets == "deleted":
        return None
    spec: Words = {"disruption": {"budgets": budgets}}
    return spec | {name: case[name] for name in ("replicas", "limits") if name in case}


def names_of(group: str, words: Words) -> list[str]:
    return [f"{group}-{n}" for n in range(words.get("count", 1))]


def drift_of(case: Words) -> Drift:
    """Groups of nodes, told by their NodeClaims."""
    already, fresh, undrifted = (
        tuple(
            sorted(f"claim-{name}" for group in case.get(field, ()) for name in names_of(group, case["nodes"][group]))
        )
        for field in ("already", "fresh", "undrifted")
    )
    return Drift(already, fresh, undrifted)


def surroundings(case: Words) -> Surroundings:
    pool = case.get("pool", {})
    declared = None if pool == "absent" else Declared("GpuPool", POOL, gpu_pool(pool), ())
    seen = observed(case)
    return Surroundings(Fleet(seen), NOW, PodBudgets(seen.budgets), POOL, declared)


def observed(case: Words) -> Observed:
    nodes: list[Node] = []
    claims: list[NodeClaim] = []
    pods: list[Pod] = []
    for group, words in case["nodes"].items():
        for name in names_of(group, words):
            if words.get("node", True):
                nodes.append(_node(name, words))
            if words.get("claim", True):
                claims.append(_claim(name, words))
            pods += _pods(name, words.get("pods", ()))
    budgets = tuple(_budget(name, words) for name, words in case.get("pdbs", {}).items())
    return Observed(nodes=tuple(nodes), pods=tuple(pods), node_claims=tuple(claims), budgets=budgets)


def _metadata(name: str, words: Words) -> Words:
    return {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "labels": {
            "gpu.scheduling/pool" if words.get("made_by_hand") else "karpenter.sh/nodepool": POOL,
            "node.kubernetes.io/instance-type": words.get("type", "p4d.24xlarge"),
            "karpenter.sh/capacity-type": words.get("capacity", "on-demand"),
        },
        "annotations": _annotations(words),
    }


def _annotations(words: Words) -> Words:
    return {"karpenter.sh/do-not-disrupt": words["asks"]} if "asks" in words else {}


def _node(name: str, words: Words) -> Node:
    metadata = _metadata(name, words) | ({"deletionTimestamp": timestamp(NOW)} if words.get("leaving") else {})
    taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}] if words.get("disrupted") else []
    return msgspec.convert(
        {
            "metadata": metadata,
            "spec": {"taints": taints},
            "status": {
                "allocatable": {"nvidia.com/gpu": str(words.get("gpus", 8)), "pods": "110"},
                "capacity": {"nvidia.com/gpu": str(words.get("gpus", 8)), "cpu": "96", "memory": "1152Gi"},
            },
        },
        Node,
    )


def _claim(name: str, words: Words) -> NodeClaim:
    metadata = _metadata(f"claim-{name}", words)
    metadata |= {"deletionTimestamp": timestamp(NOW)} if words.get("claim_leaving") else {}
    return msgspec.convert(
        {
            "metadata": metadata,
            "spec": {"terminationGracePeriod": words.get("bound", "")},
            "status": {
                "nodeName": name if words.get("node", True) else "",
                "providerID": f"kwok://{name}" if words.get("bought", True) else "",
                "allocatable": {"nvidia.com/gpu": str(words.get("gpus", 8))},
                "conditions": [{"type": "InstanceTerminating", "status": str(words.get("terminating", False))}],
            },
        },
        NodeClaim,
    )


def _pods(node: str, listed: list[Any]) -> Iterator[Pod]:
    for n, words in enumerate(listed):
        yield pod(f"{node}-{n}", _in_full(words) | {"node": node})


def _in_full(words: Any) -> Words:
    if isinstance(words, int):
        return {"gpus": words}
    if isinstance(words, str):
        return {"phase": "Succeeded"} if words == "finished" else {"owner": _OWNERS[words]}
    return dict(words)


def pod(name: str, words: Words) -> Pod:
    """A pod of namespace `team`."""
    status: Words = {"phase": words.get("phase", "Running")}
    if "ran" in words:
        status["startTime"] = timestamp(Instant(NOW - Duration.parse(words["ran"]).milliseconds))
    if "ready" in words:
        status["conditions"] = [{"type": "Ready", "status": str(words["ready"])}]
    tolerations = [{"key": words["tolerates"], "operator": "Exists"}] if "tolerates" in words else []
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "team",
                "labels": words.get("labels", {}),
                "annotations": _annotations(words),
                "ownerReferences": [{"kind": words.get("owner", "ReplicaSet"), "name": "one", "controller": True}],
                **({"deletionTimestamp": timestamp(NOW)} if words.get("leaving") else {}),
            },
            "spec": {
                "nodeName": words.get("node", ""),
                "terminationGracePeriodSeconds": words.get("grace", 30),
                "tolerations": tolerations,
                "containers": [{"resources": {"requests": {"nvidia.com/gpu": str(words.get("gpus", 0))}}}],
            },
            "status": status,
        },
        Pod,
    )


def _budget(name: str, words: Words) -> PodDisruptionBudget:
    status = {"disruptionsAllowed": words["allows"], "observedGeneration": 1} if "allows" in words else {}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": words.get("namespace", "team")},
            "spec": {
                "selector": {"matchLabels": words["labels"]},
                "unhealthyPodEvictionPolicy": words.get("unhealthy", ""),
            },
            "status": status,
        },
        PodDisruptionBudget,
    )
