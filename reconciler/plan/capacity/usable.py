"""Whether a node that has come can be used: it is ready, has its GPUs, and nobody keeps its pods away for the start."""

from collections.abc import Set as AbstractSet

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.plan.nodes.ownership import untouchable


def startup_taints(observed: Observed, pool: str) -> frozenset[tuple[str, str]]:
    """Those with which others keep pods away from new nodes of a pool, by key and effect: they take them off."""
    node_pool = next((each for each in observed.node_pools if each.name == pool), None)
    template = (node_pool.spec.get("template") or {}).get("spec") or {} if node_pool else {}
    found = frozenset((str(each.get("key")), str(each.get("effect"))) for each in template.get("startupTaints") or ())
    return frozenset(each for each in found if each[0] != names.ARRIVING)


def is_usable(node: Node, passing: AbstractSet[tuple[str, str]]) -> bool:
    """`passing`: the startup taints of others."""
    if not node.is_ready or not node.gpus or node.metadata.leaving:
        return False
    return all(each.key != names.UNREGISTERED and (each.key, each.effect) not in passing for each in node.spec.taints)


def is_opening(node: Node, passing: AbstractSet[tuple[str, str]]) -> bool:
    """Whether our own startup taint is all that keeps it closed, and may come off. By what is seen of the node alone:
    its NodeClaim is watched apart, and may be told of earlier or later."""
    return node.taint(names.ARRIVING) is not None and untouchable(node) is None and is_usable(node, passing)
