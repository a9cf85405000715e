"""Owner of the NodeClaims by pool and by what they say; it moves on from one sighting to the next by what changed."""

from collections.abc import Mapping, Sequence

from reconciler.fleet.snapshot.diff import changes
from reconciler.fleet.snapshot.pool_index import PerPoolIndex
from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim


class NodeClaimIndex:
    """As of the sighting to which it was last advanced."""

    def __init__(self, claims: tuple[NodeClaim, ...]) -> None:
        self._claims: tuple[NodeClaim, ...] = ()
        self.by_pool = PerPoolIndex[NodeClaim](_pool_of)
        self.drifted = PerPoolIndex[NodeClaim](_pool_of, _is_drifted)
        self.initializing = PerPoolIndex[NodeClaim](_pool_of, _is_initializing)
        self._leaving = PerPoolIndex[NodeClaim](_pool_of, _is_leaving)
        self._on_nodes: dict[str, dict[str, NodeClaim]] = {}
        self.advance(claims)

    def advance(self, claims: tuple[NodeClaim, ...]) -> None:
        """To the claims as they were seen next."""
        gone, came = changes(self._claims, claims)
        self._claims = claims
        for shelf in (self.by_pool, self.drifted, self.initializing, self._leaving):
            shelf.move(gone, came)
        for each in (*gone, *came):
            self._on_nodes.pop(_pool_of(each), None)

    def leaving(self) -> Sequence[NodeClaim]:
        """Those that are being deleted."""
        return self._leaving.all()

    def on_nodes(self, pool: str) -> Mapping[str, NodeClaim]:
        """Those of one pool by the names of their nodes; of several of one node the last by name."""
        node_claims = self._on_nodes.get(pool)
        if node_claims is None:
            node_claims = self._on_nodes[pool] = {each.status.node_name: each for each in self.by_pool.of(pool)}
        return node_claims


def _pool_of(claim: NodeClaim) -> str:
    return claim.metadata.labels.get(names.KARPENTER_POOL, "")


def _is_drifted(claim: NodeClaim) -> bool:
    return claim.says("Drifted")


def _is_initializing(claim: NodeClaim) -> bool:
    """Whether it says that its node can't be used yet."""
    condition = claim.condition("Initialized")
    return condition is not None and condition.status != "True"


def _is_leaving(claim: NodeClaim) -> bool:
    return claim.metadata.leaving
