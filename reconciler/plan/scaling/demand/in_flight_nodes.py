"""Capacity on its way: machines that were bought and are no nodes yet, and nodes that can't be used yet."""

import msgspec

from reconciler.fleet.binpack.shape import Shape
from reconciler.fleet.binpack.virtual_nodes import new_node
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.plan.nodes.initialization import is_initializing
from reconciler.plan.scaling.pool_view import PoolView


class Coming(msgspec.Struct, frozen=True):
    """What pods will find there."""

    nodes: tuple[Node, ...] = ()  # as they will be
    instead_of: tuple[Node, ...] = ()  # as they are, those of them that have come
    vague: int = 0  # machines of which the cloud has not said what they are


def coming_of(pool_view: PoolView, shapes: list[Shape], snapshot: Snapshot) -> Coming:
    """Of one pool; a node is taken for what a machine of its type will be. Those that have been opened to pods already
    are gone from the what-if by their own names."""
    by_name = {each.name: each for each in shapes}
    nodes, instead_of, vague = [], [], 0
    # Each of these comes for its smart pod, and is told of with it.
    used = pool_view.context.draft.requests.used_claims_of(pool_view.pool.name)
    for claim in pool_view.arriving:
        if claim.name in used:
            continue
        shape = by_name.get(claim.metadata.labels.get(names.INSTANCE_TYPE, ""))
        if shape is None or not _is_placed(claim, shape):
            vague += 1
        else:
            nodes.append(as_it_will_be(claim.name, claim.metadata.labels, shape))
    for node in _initializing(pool_view):
        if not snapshot.rows.alive[snapshot.rows.row_of[node.name]]:
            continue
        shape = by_name.get(node.instance_type)
        if shape is not None and is_initializing(node, pool_view.claim_of(node), pool_view.context.now):
            nodes.append(as_it_will_be(node.name, node.metadata.labels, shape))
            instead_of.append(node)
    return Coming(tuple(nodes), tuple(instead_of), vague)


def _initializing(pool_view: PoolView) -> list[Node]:
    """Nodes that nobody takes away and of which a NodeClaim says that they can't be used yet, by name."""
    claims = pool_view.context.fleet.claims_initializing(pool_view.pool.name)
    there = {each.status.node_name for each in claims}
    return [each.node for each in pool_view.facts if each.name in there and pool_view.stays(each.name)] if there else []


def _is_placed(claim: NodeClaim, shape: Shape) -> bool:
    zones = {each.zone for each in shape.offerings}
    return zones == {""} or names.ZONE in claim.metadata.labels


def as_it_will_be(name: str, labels: dict[str, str], shape: Shape) -> Node:
    return new_node(f"coming/{name}", shape.labels | labels, shape)
