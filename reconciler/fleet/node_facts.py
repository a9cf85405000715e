"""What planners go by of each node in every cycle, read once for as long as the node is the same object."""

from collections.abc import Iterable

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node

_GOING = frozenset({names.DELETION_TIME, names.DRAINING, names.DISRUPTED})


class NodeFacts(msgspec.Struct, frozen=True, gc=False):
    """Of one node."""

    node: Node
    name: str
    pool: str
    gpus: int
    is_ready: bool
    is_leaving: bool
    is_going: bool  # bears a taint by which somebody takes it away
    provisioner: str  # that it is labelled with


def read_again(before: dict[str, NodeFacts], nodes: Iterable[Node]) -> dict[str, NodeFacts]:
    """By name, in order of names; what was read of the same object is kept."""
    found: dict[str, NodeFacts] = {}
    for node in sorted(nodes, key=_name):
        name = node.metadata.name
        known = before.get(name)
        found[name] = known if known is not None and known.node is node else _read(node)
    return found


def _name(node: Node) -> str:
    return node.metadata.name


def _read(node: Node) -> NodeFacts:
    metadata = node.metadata
    return NodeFacts(
        node=node,
        name=metadata.name,
        pool=node.pool,
        gpus=node.gpus,
        is_ready=node.is_ready,
        is_leaving=metadata.leaving,
        is_going=any(taint.key in _GOING for taint in node.spec.taints),
        provisioner=metadata.labels.get(names.PROVISIONER, ""),
    )
