"""Indexes of nodes and NodeClaims by name, pool and node; without numpy, which is slow to import."""

from collections.abc import Mapping, Sequence

import msgspec

from reconciler.fleet.snapshot.diff import changes
from reconciler.fleet.snapshot.pools import PerPoolIndex
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim


class NodeIndex:
    """Nodes of the last observation."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.by_name: dict[str, Node] = {}  # callers must not modify it
        self._by_pool = PerPoolIndex[Node](_pool_of)
        self._taken_away = PerPoolIndex[Node](_pool_of, _is_taken_away)
        self._frozen = PerPoolIndex[Node](_pool_of, _is_frozen)
        self.advance((), nodes)

    def advance(self, gone: Sequence[Node], came: Sequence[Node]) -> None:
        """Applies removed and added nodes."""
        for each in gone:
            self.by_name.pop(each.name, None)
        for each in came:
            self.by_name[each.name] = each
        for shelf in (self._by_pool, self._taken_away, self._frozen):
            shelf.move(gone, came)

    def of(self, pool: str) -> Sequence[Node]:
        """Nodes of a pool, by name."""
        return self._by_pool.of(pool)

    def taken_away(self) -> Sequence[Node]:
        """Nodes that are being deleted or disrupted by Karpenter."""
        return self._taken_away.all()

    def frozen(self) -> Sequence[Node]:
        """Nodes with a freeze annotation, whether or not it has expired."""
        return self._frozen.all()


def _pool_of(node: Node) -> str:
    return node.pool


def _is_taken_away(node: Node) -> bool:
    return node.metadata.leaving or node.taint(names.DISRUPTED) is not None


def _is_frozen(node: Node) -> bool:
    return bool(node.metadata.annotations.frozen_until)


# --- Owner of the NodeClaims by pool and condition; updated incrementally.


class NodeClaimIndex:
    """The NodeClaims of the last snapshot, by pool.

    Karpenter writes the owner reference of a node before it writes the name of the node into the NodeClaim. In between,
    a NodeClaim of this index has the name of the node that it owns: a machine counts once, as its node.
    """

    def __init__(self, claims: tuple[NodeClaim, ...], nodes: NodeIndex) -> None:
        self._claims: tuple[NodeClaim, ...] = ()
        self.by_pool = PerPoolIndex[NodeClaim](_node_claims_pool_of)
        self.drifted = PerPoolIndex[NodeClaim](_node_claims_pool_of, _is_drifted)
        self.initializing = PerPoolIndex[NodeClaim](_node_claims_pool_of, _is_initializing)
        self._leaving = PerPoolIndex[NodeClaim](_node_claims_pool_of, _is_leaving)
        self._on_nodes: dict[str, dict[str, NodeClaim]] = {}
        self._without_node: dict[str, NodeClaim] = {}
        self.advance(claims, nodes)

    def advance(self, claims: tuple[NodeClaim, ...], nodes: NodeIndex) -> None:
        """Replaces the NodeClaims by those of the next snapshot; `nodes` has the nodes of the same snapshot."""
        gone, came = changes(self._claims, claims)
        self._claims = claims
        self._move(gone, came)
        for each in gone:
            self._without_node.pop(each.name, None)
        self._without_node |= {each.name: each for each in came if not each.status.node_name}
        if self._without_node:
            self._name_nodes(nodes)

    def _move(self, gone: Sequence[NodeClaim], came: Sequence[NodeClaim]) -> None:
        for index in (self.by_pool, self.drifted, self.initializing, self._leaving):
            index.move(gone, came)
        for each in (*gone, *came):
            self._on_nodes.pop(_node_claims_pool_of(each), None)

    def _name_nodes(self, nodes: NodeIndex) -> None:
        """Gives NodeClaims without a node the name of the node that refers to them as its owner."""
        pools = {_node_claims_pool_of(each) for each in self._without_node.values()}
        owned = {
            owner.name: node.name
            for pool in pools
            for node in nodes.of(pool)
            for owner in node.metadata.owner_references
            if owner.kind == "NodeClaim"
        }
        claims = [self._without_node.pop(name) for name in [*self._without_node] if name in owned]
        self._move(claims, [_on_node(each, owned[each.name]) for each in claims])

    def leaving(self) -> Sequence[NodeClaim]:
        """NodeClaims that are being deleted."""
        return self._leaving.all()

    def on_nodes(self, pool: str) -> Mapping[str, NodeClaim]:
        """NodeClaims of one pool by node name; of several for one node, the last by name."""
        node_claims = self._on_nodes.get(pool)
        if node_claims is None:
            node_claims = self._on_nodes[pool] = {each.status.node_name: each for each in self.by_pool.of(pool)}
        return node_claims


def _on_node(claim: NodeClaim, node: str) -> NodeClaim:
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, node_name=node))


def _node_claims_pool_of(claim: NodeClaim) -> str:
    return claim.metadata.labels.get(names.KARPENTER_POOL, "")


def _is_drifted(claim: NodeClaim) -> bool:
    return claim.says("Drifted")


def _is_initializing(claim: NodeClaim) -> bool:
    """Whether the NodeClaim's node is not initialized yet."""
    condition = claim.condition("Initialized")
    return condition is not None and condition.status != "True"


def _is_leaving(claim: NodeClaim) -> bool:
    return claim.metadata.leaving
