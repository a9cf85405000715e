"""Owner of the what-if cluster: what is where, by pool and by node, and what would be, of one Observed."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from reconciler.fleet.books.claims_seen import ClaimsSeen
from reconciler.fleet.books.nodes_seen import NodesSeen
from reconciler.fleet.books.pods_seen import PodsSeen
from reconciler.fleet.node_facts import NodeFacts, read_again
from reconciler.fleet.occupancy import Occupancy
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

if TYPE_CHECKING:
    from reconciler.fleet.what_if import WhatIf

# What is made of which kind of object, and so is made anew when those have changed.
_INDEXES = (
    ("nodes", ("_facts_by_pool", "_nodeless")),
    ("leases", ("lent",)),
    ("node_claims", ("_nodeless",)),
)


class Fleet:
    """Answers where things are; each index is made when it is first asked for, so that an idle plan costs nothing, and
    kept for as long as what it is of is the same."""

    def __init__(self, observed: Observed, what_if: "WhatIf | None" = None) -> None:
        self.observed = observed
        self._facts: dict[str, NodeFacts] = {}  # as they were when they were last asked for
        self._nodes = NodesSeen(observed.nodes)
        self._claims = ClaimsSeen(observed.node_claims)
        self._pods: PodsSeen | None = None
        self._are_pods_current = False
        if what_if is not None:  # which stands where the observed does
            self.__dict__["what_if"] = what_if

    @cached_property
    def what_if(self) -> "WhatIf":
        """Where pods would fit, and what if."""
        from reconciler.fleet.what_if import WhatIf  # noqa: PLC0415  a tenth of a second, which most commands don't pay

        return WhatIf(self.observed)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Who is on each node, in sums."""
        return Occupancy(self.observed.pods)

    def advance(self, observed: Observed) -> None:
        """To the cluster as it was seen next."""
        before, self.observed = self.observed, observed
        if observed.nodes is not before.nodes:
            self._nodes = NodesSeen(observed.nodes)
        if observed.node_claims is not before.node_claims:
            self._claims = ClaimsSeen(observed.node_claims)
        self._are_pods_current &= observed.pods is before.pods
        if "what_if" in self.__dict__:
            self.what_if.advance(observed)
        if "occupancy" in self.__dict__:
            self.occupancy.advance(observed.pods)
        for field, indexes in _INDEXES:
            if getattr(before, field) is not getattr(observed, field):
                for index in indexes:
                    self.__dict__.pop(index, None)

    def node(self, name: str) -> Node | None:
        return self._nodes.by_name.get(name)

    def nodes_of(self, pool: str) -> Sequence[Node]:
        """The nodes of a pool, by name."""
        return self._nodes.by_pool.get(pool, ())

    @property
    def nodes_taken_away(self) -> Sequence[Node]:
        """Those that are being deleted, or that Karpenter disrupts."""
        return self._nodes.taken_away

    def pods_on(self, node: str) -> Sequence[Pod]:
        """The pods bound to a node, finished ones included, by namespace and name."""
        if self._pods is None:
            self._pods = PodsSeen(self.observed.pods)
        elif not self._are_pods_current:
            self._pods.advance(self.observed.pods)
        self._are_pods_current = True
        return self._pods.by_node.get(node, ())

    def facts_of(self, pool: str) -> Sequence[NodeFacts]:
        """The same, and what planners go by of each."""
        return self._facts_by_pool.get(pool, ())

    def nodeless_claims_of(self, pool: str) -> Sequence[NodeClaim]:
        """The NodeClaims of a pool whose nodes are not there, by name."""
        return self._nodeless.get(pool, ())

    def claims_of(self, pool: str) -> Sequence[NodeClaim]:
        """The NodeClaims of a pool, by name."""
        return self._claims.by_pool.get(pool, ())

    @property
    def claims_leaving(self) -> Sequence[NodeClaim]:
        """Those that are being deleted."""
        return self._claims.leaving

    @cached_property
    def _facts_by_pool(self) -> dict[str, list[NodeFacts]]:
        self._facts = read_again(self._facts, self.observed.nodes)
        found = defaultdict(list)
        for each in self._facts.values():
            found[each.pool].append(each)
        return dict(found)

    @cached_property
    def _nodeless(self) -> dict[str, list[NodeClaim]]:
        there = self._nodes.by_name
        lacking = {
            pool: [each for each in claims if each.status.node_name not in there]
            for pool, claims in self._claims.by_pool.items()
        }
        return {pool: claims for pool, claims in lacking.items() if claims}

    @cached_property
    def lent(self) -> Mapping[str, int]:
        """GPUs that are lent to claims, by node: there is a Lease for each, which its borrower holds."""
        held = (each for each in self.observed.leases if each.spec.holder_identity)
        return Counter(owner.name for each in held for owner in each.metadata.owner_references if owner.kind == "Node")

    def drifted_claims_of(self, pool: str) -> Sequence[NodeClaim]:
        """Those of a pool that say that they are drifted, by name."""
        return self._claims.drifted.get(pool, ())
