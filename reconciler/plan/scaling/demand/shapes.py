"""Shapes of new nodes: like an existing node of the instance type, else as the policy declares.

From existing nodes: the labels that all nodes of the type share, and their allocatable resources minus the requests
of DaemonSets and static pods. Without an existing node: the declared capacity minus the requests of the DaemonSets
that would run there; a resource that is not declared counts as sufficient. If a pool requires no zones, a new node
may come in any zone of the cluster's nodes, or in a zone that a waiting pod names. In a cluster without nodes a new
node has some zone, because pods may require one another there.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.fleet.amounts import CPU, counted, pod_request
from reconciler.fleet.binpack.offers import Offering, Shape
from reconciler.fleet.filters.node import unborne
from reconciler.fleet.node_terms import readable, term_holds
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeClaim, NodeSpec, NodeStatus, NodeTaint
from reconciler.model.cluster.observed import comes_with_each_node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.policy.gpu import GpuPool, InstanceType
from reconciler.plan.capacity.offerings import demanded_zones
from reconciler.plan.nodes.ownership import is_initializing
from reconciler.plan.scaling.pool_view import PoolView, ScalingContext

# --- Labels that a new node may have because pods require them and nothing excludes them.
#
# A pool that requires no zones leaves the zone to Karpenter, which knows the zones of the node class; reconciler knows
# only the zones of the cluster's nodes. A zone that a waiting pod names counts too: if Karpenter can't buy there, the
# attempt fails like any other. The region, and the labels of cloud providers, are known from existing nodes. For a type
# without nodes, a new node gets the value that pods require, if all of them require the same.

_MOST_ZONES = 20
_OF_CLOUDS = ("karpenter.k8s.aws/", "karpenter.azure.com/", "karpenter.k8s.gcp/")


class OpenLabels(msgspec.Struct, frozen=True):
    """Labels that waiting pods require."""

    zones: tuple[str, ...] = ()
    of_machines: Mapping[str, str] = {}

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> "OpenLabels":
        asked: defaultdict[str, set[str]] = defaultdict(set)
        for pod in pods:
            for key, values in _selected_labels(pod):
                if key in {names.ZONE, names.REGION} or key.startswith(_OF_CLOUDS):
                    asked[key].update(values)
        zones = sorted(asked.pop(names.ZONE, ()))
        return cls(tuple(zones[:_MOST_ZONES]), {key: min(values) for key, values in asked.items() if len(values) == 1})


def _selected_labels(pod: Pod) -> Iterator[tuple[str, Iterable[str]]]:
    yield from ((key, (value,)) for key, value in pod.spec.node_selector.items())
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        yield from ((each.key, each.values) for each in term.match_expressions if each.operator == "In")


# Assumed resources of a machine that its policy does not declare.
_PLENTY = 10**12
_MOST_PODS = 110
_UNPRICED = 10**15  # more expensive than any machine with a price
_OF_ONE_NODE = frozenset({names.HOSTNAME, names.ZONE, names.CAPACITY_TYPE, names.PROVISIONER})
_NOT_THERE = (names.ZONE, "NotIn")
_SOME_ZONE = "a-zone-that-karpenter-chooses"  # no node has the label, so this is the only domain
_NOTHING = OpenLabels()
_MACHINE = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


def shapes_of(pool_view: PoolView, open_labels: OpenLabels = _NOTHING) -> list[Shape]:
    """One shape for each instance type of the pool. `open_labels`: labels that waiting pods require."""
    zones = list(_zones(pool_view, open_labels))
    return [_shape(pool_view, each, zones, open_labels) for each in pool_view.pool.spec.instance_types]


def _zones(pool_view: PoolView, open_labels: OpenLabels) -> Iterable[str]:
    fleet, pool = pool_view.context.fleet, pool_view.pool.spec
    if demanded := demanded_zones(pool):
        return demanded
    if not fleet.zones and not fleet.observed.nodes:
        return open_labels.zones or (_SOME_ZONE,)
    refused = {zone for each in pool.requirements if (each.key, each.operator) == _NOT_THERE for zone in each.values}
    return sorted({*pool_view.zones, *(each for each in open_labels.zones if each not in refused)})


def taints_of(pool: GpuPool) -> tuple[NodeTaint, ...]:
    """Taints of each node of the pool."""
    return tuple(NodeTaint(each.key, each.effect, each.value) for each in pool.taints)


def _shape(pool_view: PoolView, machine: InstanceType, zones: Sequence[str], open_labels: OpenLabels) -> Shape:
    pool = pool_view.pool.spec
    alive = pool_view.totals.alike(machine.name)
    if alive is not None:
        labels = dict(alive.shared)
        amounts = _left_by_daemons(pool_view.context, alive.largest)
    else:
        labels = {**open_labels.of_machines, **_declared_labels(pool_view, machine)}
        amounts = _declared_amounts(pool_view, machine, labels)
    labels = {key: value for key, value in labels.items() if key not in _OF_ONE_NODE}
    offerings = tuple(
        Offering(zone, capacity_type, money.micro_dollars if money else _UNPRICED)
        for capacity_type in pool.capacity_types
        for money in [machine.price_per_hour.get(capacity_type)]
        for zone in zones
    )
    return Shape(machine.name, labels, taints_of(pool), written(amounts), offerings)


def _left_by_daemons(context: ScalingContext, node: Node) -> dict[str, int]:
    snapshot = context.fleet.snapshot
    pods = snapshot.pods_of_row(snapshot.rows.row_of[node.name])
    return _less(
        counted(node.status.allocatable), (pod for pod in pods if comes_with_each_node(pod, context.daemon_sets))
    )


def _declared_amounts(pool_view: PoolView, machine: InstanceType, labels: dict[str, str]) -> dict[str, int]:
    pool = pool_view.pool.spec
    has = {CPU: _PLENTY, "memory": _PLENTY, "ephemeral-storage": _PLENTY, "pods": _MOST_PODS}
    has |= counted({name: str(amount) for name, amount in machine.capacity.items()})
    has[names.NVIDIA_GPU] = pool.devices.count
    return less_daemons(pool_view.context, has, labels, taints_of(pool))


def less_daemons(
    context: ScalingContext, has: dict[str, int], labels: dict[str, str], taints: Sequence[NodeTaint]
) -> dict[str, int]:
    """Resources of a new node, minus the requests of DaemonSets that will run there."""
    made = Node(Metadata("new", labels=labels))
    borne = (pod for pod, tolerance in context.daemons if unborne(taints, tolerance) is None)
    return _less(has, (pod for pod in borne if _selects(pod, made)))


def _selects(pod: Pod, node: Node) -> bool:
    spec = pod.spec
    if any(node.metadata.labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    required = spec.affinity.node_affinity.required if spec.affinity else None
    return required is None or any(readable(term) and term_holds(term, node) for term in required.node_selector_terms)


def _less(has: dict[str, int], pods: Iterable[Pod]) -> dict[str, int]:
    for pod in pods:
        for name, amount in (pod_request(pod) | {"pods": 1}).items():
            if name in has:
                has[name] = max(0, has[name] - amount)
    return has


def written(amounts: dict[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in amounts.items()}


def _declared_labels(pool_view: PoolView, machine: InstanceType) -> dict[str, str]:
    pool = pool_view.pool.spec
    found = _MACHINE | {each.key: min(each.values) for each in pool.requirements if each.operator == "In"}
    own = {
        names.KARPENTER_POOL: pool_view.pool.name,
        names.INSTANCE_TYPE: machine.name,
        names.GPU_TYPE: pool.devices.model,
    }
    return found | pool.labels | own


# --- In-flight machines of NodePools that no GpuPool declares: Karpenter may have bought them for waiting pods.
#
# A machine counts once its NodeClaim has allocatable resources. Until its node is usable, the machine counts as its
# future node: without the taints that disappear while a node starts.

_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class MachineElsewhere(msgspec.Struct, frozen=True):
    """One in-flight machine, and its node if the node has registered."""

    pool: str
    claim: str
    node: Node
    instead_of: Node | None = None


def machines_elsewhere(context: ScalingContext, declared: Collection[str]) -> Iterator[MachineElsewhere]:
    """Machines by NodePool and NodeClaim. `declared`: the names of all GpuPools."""
    for node_pool in sorted(context.inputs.observed.node_pools, key=lambda each: each.name):
        if node_pool.name not in declared:
            yield from _of(context, node_pool)


def _of(context: ScalingContext, node_pool: Unstructured) -> Iterator[MachineElsewhere]:
    template = (node_pool.spec.get("template") or {}).get("spec") or {}
    taints, passing = _taints(template.get("taints")), _taints(template.get("startupTaints"))
    for claim in context.fleet.nodeless_claims_of(node_pool.name):
        if not claim.metadata.leaving and claim.status.allocatable:
            yield MachineElsewhere(node_pool.name, claim.name, _as_it_will_be(context, claim, taints))
    keys = {(each.key, each.effect) for each in passing}
    for claim in context.fleet.claims_initializing(node_pool.name):
        node = context.fleet.node(claim.status.node_name)
        if (
            node is None
            or node.is_being_removed
            or node.metadata.leaving
            or not is_initializing(node, claim, context.now)
        ):
            continue
        left = tuple(each for each in node.spec.taints if (each.key, each.effect) not in keys and not _passes(each))
        yield MachineElsewhere(node_pool.name, claim.name, _ready(node, claim, left), node)


def _as_it_will_be(context: ScalingContext, claim: NodeClaim, taints: tuple[NodeTaint, ...]) -> Node:
    labels = {names.HOSTNAME: claim.name} | claim.metadata.labels
    amounts = less_daemons(context, counted(claim.status.allocatable), labels, taints)
    metadata = Metadata(f"elsewhere/{claim.name}", labels=labels)
    return Node(metadata, NodeSpec(taints=taints), NodeStatus(allocatable=written(amounts)))


def _ready(node: Node, claim: NodeClaim, taints: tuple[NodeTaint, ...]) -> Node:
    has = node.status.allocatable | {
        name: amount for name, amount in claim.status.allocatable.items() if not _is_there(node, name)
    }
    metadata = msgspec.structs.replace(node.metadata, name=f"elsewhere/{claim.name}")
    spec = msgspec.structs.replace(node.spec, taints=taints)
    return msgspec.structs.replace(
        node, metadata=metadata, spec=spec, status=msgspec.structs.replace(node.status, allocatable=has)
    )


def _is_there(node: Node, resource: str) -> bool:
    """Whether the node has the resource. Devices count 0 until their plugin has reported them."""
    return node.status.allocatable.get(resource, "0") != "0"


def _passes(taint: NodeTaint) -> bool:
    return taint.key == names.UNREGISTERED or taint.key.startswith(_PASSING)


def _taints(said: Any) -> tuple[NodeTaint, ...]:
    """Taints as written in a NodePool, without unreadable ones."""
    found = (each for each in said or () if isinstance(each, dict)) if isinstance(said, list) else ()
    return tuple(
        NodeTaint(str(each.get("key")), str(each.get("effect")), str(each.get("value") or "")) for each in found
    )
