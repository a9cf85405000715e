"""A cluster with lent GPUs, in the words of tests/cases/gpu/leases.yaml and bindings.yaml."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.fleet.devices.device_lease import lease_name
from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.pod import LocalObjectReference, Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.problem import Origin
from reconciler.model.quantity import Quantity
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.gpu.planner import gpu
from tests import builders
from tests.unit.plan.scaling.stage import NOW

POOL = "a100"
Json = dict[str, Any]


class World:
    """The inputs of a case, and what the planner decides."""

    def __init__(self, case: Json) -> None:
        is_whole = case.get("only") or "b" in case.get("nodes", {})
        nodes = case.get("nodes", {}) if is_whole else {"a": {}, "b": {}, **case.get("nodes", {})}
        observed = Observed(
            seen_at=NOW,
            nodes=tuple(_node(name, words) for name, words in nodes.items()),
            pods=tuple(_pod(name, words) for name, words in case.get("pods", {}).items()),
            leases=tuple(_lease(place, words) for place, words in case.get("leases", {}).items()),
            policies=(*_reports(nodes), *(_claim(name, words) for name, words in case.get("claims", {}).items())),
            unread=tuple(Unread(each, "forbidden") for each in case.get("unread", ())),
        )
        desired = Desired("r", "base", pools=(_pool(case.get("pool", {})),))
        self.inputs = Inputs(desired, observed, NOW, scheduler=case.get("scheduler", "external"))

    def verdict(self) -> Verdict:
        return gpu(self.inputs, Draft(Fleet(self.inputs.observed), self.inputs.desired))


def _pool(words: Json) -> Declared[GpuPool]:
    spec = GpuPool(
        mode=words.get("mode", "Enforce"),
        suspend=words.get("suspend", False),
        allocation=words.get("allocation", "plugin"),
        devices=Devices(model="a100", count=8, memory=Quantity.parse("40Gi")),
        instance_types=[InstanceType(name="p4d.24xlarge")],
        node_class_ref=NodeClassRef(group="example.com", kind="NodeClass", name="gpu"),
    )
    return Declared("GpuPool", POOL, spec, (("", Origin("gpu.yaml", 1)),))


def ago(seconds: int) -> str:
    return timestamp(Instant(NOW - 1_000 * seconds))


def _node(name: str, words: Json) -> Node:
    down = words.get("down")
    ready = Condition("Ready", "True") if down is None else Condition("Ready", "Unknown", "", ago(down))
    has = {"cpu": "96", "memory": "1000Gi", "pods": "110"}
    woken = Annotations(pods_woken_at=str((NOW - 1_000 * words["woken"]) // 1_000) if "woken" in words else "")
    return builders.node(name, gpus=8, has=has, labels={names.POOL: POOL}, conditions=(ready,), annotations=woken)


def _pod(name: str, words: Json) -> Pod:
    said = words.get("claim", True)
    claim = {"claim": "one" if said is True else said} if said else {}
    pod = builders.pod(
        name,
        namespace="team",
        gpus=words.get("gpus", 1),
        node_name=words.get("at", ""),
        annotations=Annotations(**claim, releasing=words.get("releasing", ""), allocated=words.get("allocated", "")),
        resource_version="50",
    )
    spec = msgspec.structs.replace(
        pod.spec,
        scheduler_name=words.get("scheduler", names.GPU_SCHEDULER),
        priority=words.get("priority", 0),
        scheduling_gates=tuple(LocalObjectReference(each) for each in words.get("gates", ())),
    )
    pod = msgspec.structs.replace(pod, spec=spec)
    phase = words.get("phase", "Running" if words.get("at") else "Pending")
    refused = (
        (Condition("PodScheduled", "False", "Unschedulable", ago(words["refused"])),) if "refused" in words else ()
    )
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase, conditions=refused))


def _reports(nodes: Json) -> Iterator[Unstructured]:
    """Of nodes with islands: the number of GPUs in each."""
    for name, words in nodes.items():
        islands = [number for number, count in enumerate(words.get("islands", ())) for _ in range(count)]
        devices = [
            {
                "id": at,
                "uuid": f"G{at}",
                "island": f"i{island}",
                "bandwidthGBps": 600,
                "health": "Unhealthy" if at in words.get("unhealthy", ()) else "Healthy",
            }
            for at, island in enumerate(islands)
        ]
        if devices:
            yield Unstructured(
                "gpu.scheduling/v1", "GpuNodeStatus", UnstructuredMetadata(name), {"status": {"devices": devices}}
            )


def _claim(name: str, words: Json) -> Unstructured:
    words = dict(words)
    outer = {key: words.pop(key) for key in ("suspend", "poolName") if key in words}
    body: Json = {"spec": {"devices": words, **outer}}
    return Unstructured("gpu.scheduling/v1", "GpuClaim", UnstructuredMetadata(name, "team"), body)


def _lease(place: str, words: Json) -> Lease:
    node, _, device = place.partition("/")
    metadata = Metadata(
        lease_name(node, int(device)),
        names.LEASES_NAMESPACE,
        uid=f"uid-lease-{node}-{device}",
        resource_version=str(words.get("version", 100)),
        creation_timestamp=ago(words.get("age", 300)),
        deletion_timestamp=ago(1) if words.get("leaving") else "",
        labels={} if words.get("theirs") else {names.MANAGED: "true"},
        annotations=Annotations(device=device, holder=f"team/{words['pod']}", claim="one"),
        owner_references=(OwnerReference("Node", node, f"uid-{node}"),),
    )
    return Lease(metadata, LeaseSpec(f"uid-{words['pod']}" if words["pod"] else ""))
