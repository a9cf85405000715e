"""How a pool is used: its nodes that are not being deleted, and what of their GPUs is asked for."""

from collections.abc import Sequence

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.node import Node
from reconciler.model.pool_use import Use


def use_of(fleet: Fleet, pool: str, gpus_per_node: int) -> Use:
    """The pool as it stands; tainted nodes are part of it until they are deleted."""
    nodes = [node for node in fleet.nodes_of(pool) if not node.metadata.leaving]
    return Use(
        nodes=len(nodes),
        busy_nodes=sum(is_busy(fleet, node) for node in nodes),
        gpus_used=gpus_in_use(fleet, nodes),
        gpus_total=sum(node.gpus for node in nodes),
        gpus_per_node=gpus_per_node,
    )


def is_busy(fleet: Fleet, node: Node) -> bool:
    """Whether a pod on it counts: DaemonSet and mirror pods come with every node."""
    return fleet.occupancy.counting.get(node.name, 0) > 0


def is_empty(fleet: Fleet, node: Node) -> bool:
    """Whether it could go: no pod on it counts, and none of its GPUs is lent."""
    return not is_busy(fleet, node) and not fleet.lent.get(node.name, 0)


def gpus_in_use(fleet: Fleet, nodes: Sequence[Node]) -> int:
    """On each node the larger of what unfinished pods ask for and what is lent to claims; at most what it has."""
    asked, lent = fleet.occupancy.gpus, fleet.lent
    return sum(min(node.gpus, max(asked.get(node.name, 0), lent.get(node.name, 0))) for node in nodes)
