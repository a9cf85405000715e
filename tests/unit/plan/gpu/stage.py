"""A cluster with lent GPUs, in the words of tests/cases/gpu/leases.yaml."""

from typing import Any

import msgspec

from reconciler.fleet.devices.device_lease import lease_name
from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.pod import Pod
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
        nodes = case.get("nodes", {}) if "b" in case.get("nodes", {}) else {"a": {}, "b": {}, **case.get("nodes", {})}
        observed = Observed(
            seen_at=NOW,
            nodes=tuple(_node(name, words) for name, words in nodes.items()),
            pods=tuple(_pod(name, words) for name, words in case.get("pods", {}).items()),
            leases=tuple(_lease(place, words) for place, words in case.get("leases", {}).items()),
            unread=tuple(Unread(each, "forbidden") for each in case.get("unread", ())),
        )
        self.inputs = Inputs(Desired("r", "base", pools=(_pool(),)), observed, NOW)

    def verdict(self) -> Verdict:
        return gpu(self.inputs, Draft(Fleet(self.inputs.observed), self.inputs.desired))


def _pool() -> Declared[GpuPool]:
    spec = GpuPool(
        mode="Enforce",
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
    return builders.node(name, gpus=8, labels={names.POOL: POOL}, conditions=(ready,))


def _pod(name: str, words: Json) -> Pod:
    claim = {"claim": "one"} if words.get("claim", True) else {}
    pod = builders.pod(
        name,
        namespace="team",
        gpus=words.get("gpus", 1),
        node_name=words.get("at", ""),
        annotations=Annotations(**claim, releasing=words.get("releasing", ""), allocated=words.get("allocated", "")),
        resource_version="50",
    )
    phase = words.get("phase", "Running" if words.get("at") else "Pending")
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase))


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
