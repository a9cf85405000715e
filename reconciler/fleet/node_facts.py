"""What planners go by of each node in every cycle, read once for as long as the node is the same object."""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node

_DRAINED = frozenset({names.DRAINING, names.DRAIN_CANDIDATE})


class NodeFacts(msgspec.Struct, frozen=True, gc=False):
    """Of one node."""

    node: Node
    name: str
    pool: str
    instance_type: str
    capacity_type: str
    gpus: int
    is_ready: bool
    is_leaving: bool
    is_being_removed: bool  # bears a taint by which somebody takes it away
    provisioner: str  # that it is labelled with
    is_drained: bool = False  # bears a taint of the planner that drains, the soft one of a candidate included
    is_closed: bool = False  # bears the taint with which it came
    is_unfit: bool = False  # not ready, or its driver is about to be upgraded: nothing should be moved there


def facts_of(node: Node) -> NodeFacts:
    """Read off the node."""
    metadata = node.metadata
    return NodeFacts(
        node=node,
        name=metadata.name,
        pool=node.pool,
        instance_type=node.instance_type,
        capacity_type=node.capacity_type,
        gpus=node.gpus,
        is_ready=node.is_ready,
        is_leaving=metadata.leaving,
        is_being_removed=any(taint.key in names.TAKING for taint in node.spec.taints),
        provisioner=metadata.labels.get(names.PROVISIONER, ""),
        is_drained=any(taint.key in _DRAINED for taint in node.spec.taints),
        is_closed=any(taint.key == names.ARRIVING for taint in node.spec.taints),
        is_unfit=bool(node.driver_upgrade) or not node.is_ready,
    )
