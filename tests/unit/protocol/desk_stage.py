"""Nodes, reports, claims, pods and Leases for the desk, and a cluster that a desk observes."""

from typing import Any, Self

from reconciler.fleet.devices.device_lease import lease_name
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Declared
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.quantity import Quantity
from reconciler.protocol.desk import Desk
from tests import builders

TEAM = "team"
GROUP = "gpu.scheduling/v1"
Gpu = tuple[int, str, str]  # id, UUID and island


def pool(name: str, **fields: Any) -> Declared[GpuPool]:
    devices = Devices(model=name, count=4, memory=Quantity.parse("80Gi"))
    shape = {"instance_types": [InstanceType(name="x")], "node_class_ref": NodeClassRef(group="g", kind="K", name="d")}
    spec = GpuPool(**{"devices": devices, "mode": "Enforce", "allocation": "agent", **shape, **fields})
    return Declared("GpuPool", name, spec, ())


def node(name: str, pool_name: str = "a100", gpus: int = 4, **fields: Any) -> Node:
    return builders.node(name, gpus=gpus, labels={names.POOL: pool_name}, **fields)


def report(name: str, gpus: list[Gpu]) -> Unstructured:
    devices = [
        {"id": device, "uuid": uuid, "island": island, "bandwidthGBps": 600, "health": "Healthy"}
        for device, uuid, island in gpus
    ]
    rest: dict[str, Any] = {"spec": {}, "status": {"devices": devices}}
    return Unstructured(GROUP, "GpuNodeStatus", UnstructuredMetadata(name), rest)


def board_of(name: str, count: int = 4, per_island: int = 2) -> list[Gpu]:
    return [(at, f"GPU-{name}-{at}", f"island-{at // per_island}") for at in range(count)]


def claim(name: str, **devices: Any) -> Unstructured:
    suspend = devices.pop("suspend", False)
    rest: dict[str, Any] = {"spec": {"devices": {"count": 1, **devices}, "suspend": suspend}}
    return Unstructured(GROUP, "GpuClaim", UnstructuredMetadata(name, TEAM), rest)


def pod(name: str, claim_name: str, node_name: str = "", phase: str = "", **fields: Any) -> Pod:
    fields |= {"phase": phase} if phase else {}
    annotations = Annotations(claim=claim_name)
    return builders.pod(name, namespace=TEAM, annotations=annotations, node_name=node_name, **fields)


def lease(node_name: str, device: int, holder: str, uuid: str = "", title: str = f"{TEAM}/pod") -> Lease:
    """`title`: namespace and name of the pod; empty for a Lease that others wrote."""
    owner = OwnerReference("Node", node_name, f"uid-{node_name}")
    annotations = Annotations(device=str(device), device_uuid=uuid, holder=title)
    metadata = Metadata(
        lease_name(node_name, device), names.LEASES_NAMESPACE, annotations=annotations, owner_references=(owner,)
    )
    return Lease(metadata, LeaseSpec(holder))


class Cluster:
    """Observed objects, and the desk that is told of each change."""

    def __init__(self, *pools: Declared[GpuPool]) -> None:
        self.desk = Desk()
        self.pools = pools or (pool("a100"),)
        self.desk.set_pools(self.pools)
        self.desk.is_read = True
        self.nodes: dict[str, Node] = {}
        self.reports: dict[str, Unstructured] = {}
        self.claims: dict[str, Unstructured] = {}
        self.pods: dict[str, Pod] = {}
        self.leases: dict[str, Lease] = {}

    def put(self, *found: Node | Pod | Lease | Unstructured) -> Self:
        for each in found:
            match each:
                case Node():
                    self.nodes[each.name] = each
                    self.desk.put_node(each)
                case Pod():
                    self.pods[each.metadata.name] = each
                    self.desk.put_pod(each)
                case Lease():
                    self.leases[each.metadata.name] = each
                    self.desk.put_lease(each)
                case Unstructured():
                    (self.reports if each.kind == "GpuNodeStatus" else self.claims)[each.name] = each
                    self.desk.put_policy(each)
        return self

    def drop(self, found: Node | Pod | Lease | Unstructured) -> Self:
        match found:
            case Node():
                del self.nodes[found.name]
                self.desk.drop_node(found.name)
            case Pod():
                del self.pods[found.metadata.name]
                self.desk.drop_pod(found)
            case Lease():
                del self.leases[found.metadata.name]
                self.desk.drop_lease(found)
            case Unstructured():
                del (self.reports if found.kind == "GpuNodeStatus" else self.claims)[found.name]
                self.desk.drop_policy(found)
        return self

    def objects(self) -> list[Any]:
        kinds: list[dict[str, Any]] = [self.nodes, self.reports, self.claims, self.pods, self.leases]
        return [each for kind in kinds for each in kind.values()]
