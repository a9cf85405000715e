"""Owner of the cluster model for one Observed: indexes by pool and node, and the snapshot for what-if questions."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler.fleet.amounts import GpuRequests, Lent, lent_by
from reconciler.fleet.occupancy import NodeFacts, Occupancy
from reconciler.fleet.snapshot.diff import SnapshotDiff, change_between
from reconciler.fleet.snapshot.indexes import NodeClaimIndex, NodeIndex
from reconciler.fleet.snapshot.pools import PoolIndex, PoolTotals
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

if TYPE_CHECKING:
    from reconciler.fleet.snapshot.snapshot import Snapshot


T = TypeVar("T")


class Fleet:
    """Lookup of cluster objects. Indexes are built at first use, so an idle plan costs nothing.

    An index is kept as long as its objects are unchanged.
    """

    def __init__(self, observed: Observed, snapshot: "Snapshot | None" = None) -> None:
        self.observed = observed
        self._nodeless: dict[str, list[NodeClaim]] = {}
        self._parts: dict[Callable[[], Any], Any] = {}
        if snapshot is not None:  # the snapshot is of the same Observed
            self.__dict__["snapshot"], self.__dict__["occupancy"] = snapshot, snapshot.occupancy

    @cached_property
    def snapshot(self) -> "Snapshot":
        """The snapshot for what-if questions."""
        from reconciler.fleet.snapshot.snapshot import Snapshot  # noqa: PLC0415  a tenth of a second, which most commands don't pay

        return Snapshot(self.observed, self.occupancy)

    @cached_property
    def occupancy(self) -> Occupancy:
        """The pods of each node, and sums of pods and GPUs."""
        return Occupancy(self.observed)

    def part(self, make: Callable[[], T]) -> T:
        """The instance of `make` of this fleet, an index of a planner that needs no snapshot; created at first use. It
        must follow the observation by itself.
        """
        result: T | None = self._parts.get(make)
        if result is None:
            result = self._parts[make] = make()
        return result

    def renew(self) -> None:
        """Discards all indexes, which are rebuilt at next use: after an exception, none can be trusted."""
        observed = self.observed
        self.__dict__.clear()
        self.observed, self._nodeless, self._parts = observed, {}, {}

    def advance(self, observed: Observed) -> None:
        """Advances to the next Observed; existing indexes are updated incrementally."""
        before, self.observed = self.observed, observed
        change, made = change_between(before, observed), self.__dict__
        if observed.leases is not before.leases:
            made.pop("lent", None)
        if observed.nodes is not before.nodes or observed.node_claims is not before.node_claims:
            self._nodeless = {}
        if "_nodes" in made:
            self._nodes.advance(change.gone_nodes, change.came_nodes)
        if "_claims" in made:
            self._claims.advance(observed.node_claims, self._nodes)
        if "occupancy" in made:
            bookings = self.occupancy.advance(observed, change)
            if "snapshot" in made:
                self.snapshot.advance(observed, change, bookings)
        if "_pools" in made:
            self._pools.advance(change, self.occupancy, self.lent)
        if self._is_crowded:
            for index in ("snapshot", "occupancy", "_pools"):
                made.pop(index, None)

    @property
    def _is_crowded(self) -> bool:
        """Whether most of the memory is for removed pods and nodes."""
        made = self.__dict__
        return self.snapshot.is_crowded if "snapshot" in made else "occupancy" in made and self.occupancy.is_crowded

    @cached_property
    def _nodes(self) -> NodeIndex:
        return NodeIndex(self.observed.nodes)

    @cached_property
    def _claims(self) -> NodeClaimIndex:
        return NodeClaimIndex(self.observed.node_claims, self._nodes)

    @cached_property
    def _pools(self) -> PoolIndex:
        pools = PoolIndex()
        pools.advance(SnapshotDiff([], [], [], list(self.observed.nodes)), self.occupancy, self.lent)
        return pools

    def node(self, name: str) -> Node | None:
        return self._nodes.by_name.get(name)

    def nodes_of(self, pool: str) -> Sequence[Node]:
        """The nodes of a pool, by name."""
        return self._nodes.of(pool)

    @property
    def nodes_taken_away(self) -> Sequence[Node]:
        """Nodes that are being deleted or disrupted by Karpenter."""
        return self._nodes.taken_away()

    @property
    def nodes_frozen(self) -> Sequence[Node]:
        """Nodes with a freeze annotation, whether or not it has expired."""
        return self._nodes.frozen()

    def pods_on(self, node: str) -> Sequence[Pod]:
        """The pods bound to a node, including finished ones, by namespace and name."""
        return self.occupancy.on(node).all

    def pool(self, name: str) -> PoolTotals:
        """Totals of a pool's nodes, except those that are being deleted."""
        return self._pools.of(name)

    @property
    def nodes_unsettled(self) -> Sequence[NodeFacts]:
        """Nodes that are being deleted, or have a removal taint; by name."""
        return self._pools.unsettled

    @property
    def nodes_drained(self) -> Sequence[NodeFacts]:
        """Nodes with a taint of the drain planner, including candidates; by name."""
        return self._pools.drained

    @property
    def nodes_unfit(self) -> Sequence[NodeFacts]:
        """Nodes that should receive no moved pods: unready, or before a driver upgrade; in no order."""
        return self._pools.unfit

    @property
    def zones(self) -> list[str]:
        """The zones of all nodes, sorted; empty if nodes have no zone labels."""
        return sorted(zone for zone, nodes in self._pools.zones.items() if nodes)

    def nodeless_claims_of(self, pool: str) -> Sequence[NodeClaim]:
        """The NodeClaims of a pool without a Node, by name."""
        node_claims = self._nodeless.get(pool)
        if node_claims is None:
            node_claims, there = [], self._nodes.by_name
            if not self.claims_on(pool).keys() <= there.keys():
                node_claims = [each for each in self.claims_of(pool) if each.status.node_name not in there]
            self._nodeless[pool] = node_claims
        return node_claims

    def claims_of(self, pool: str) -> Sequence[NodeClaim]:
        """The NodeClaims of a pool, by name."""
        return self._claims.by_pool.of(pool)

    @property
    def claims_leaving(self) -> Sequence[NodeClaim]:
        """NodeClaims that are being deleted."""
        return self._claims.leaving()

    @cached_property
    def lent(self) -> Lent:
        """GPUs lent to claims, by node: one Lease per GPU, held by the borrower."""
        return lent_by(each for each in self.observed.leases if each.metadata.namespace == names.LEASES_NAMESPACE)

    @property
    def gpu_requests(self) -> GpuRequests:
        """The number of GPUs that each pod requests."""
        return self.occupancy.gpu_requests

    def drifted_claims_of(self, pool: str) -> Sequence[NodeClaim]:
        """Drifted NodeClaims of a pool, by name."""
        return self._claims.drifted.of(pool)

    def claims_initializing(self, pool: str) -> Sequence[NodeClaim]:
        """NodeClaims of a pool whose nodes are not initialized yet, by name."""
        return self._claims.initializing.of(pool)

    def claims_on(self, pool: str) -> Mapping[str, NodeClaim]:
        """NodeClaims of a pool by node name."""
        return self._claims.on_nodes(pool)
