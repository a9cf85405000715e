"""Machines on their way in NodePools that no GpuPool declares: Karpenter may have bought them for pods that wait.

A machine counts once its NodeClaim says what the node will have. Until its node can be used the machine is taken for
the node that it will be: without the taints that pass while a node comes up.
"""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from reconciler.fleet.amounts import counted
from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeStatus, NodeTaint
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.nodes.initialization import is_initializing
from reconciler.plan.scaling.demand.shapes import less_daemons, written
from reconciler.plan.scaling.pool_view import ScalingContext

_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class MachineElsewhere(msgspec.Struct, frozen=True):
    """One machine, and the node that stands for it if that has come."""

    pool: str
    claim: str
    node: Node
    instead_of: Node | None = None


def machines_elsewhere(context: ScalingContext, declared: Collection[str]) -> Iterator[MachineElsewhere]:
    """By NodePool and NodeClaim. `declared`: the names of all GpuPools."""
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
    """Devices are nothing until their plugin has said how many there are."""
    return node.status.allocatable.get(resource, "0") != "0"


def _passes(taint: NodeTaint) -> bool:
    return taint.key == names.UNREGISTERED or taint.key.startswith(_PASSING)


def _taints(said: Any) -> tuple[NodeTaint, ...]:
    """As a NodePool has them; what can't be read is left out."""
    found = (each for each in said or () if isinstance(each, dict)) if isinstance(said, list) else ()
    return tuple(
        NodeTaint(str(each.get("key")), str(each.get("effect")), str(each.get("value") or "")) for each in found
    )
