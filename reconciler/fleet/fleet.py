"""Owner of the what-if cluster: what is where, by pool and by node, and what would be, of one Observed."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

if TYPE_CHECKING:
    from reconciler.fleet.what_if import WhatIf


class Fleet:
    """Answers where things are; each index is made when it is first asked for, so that an idle plan costs nothing."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed

    @cached_property
    def what_if(self) -> "WhatIf":
        """Where pods would fit, and what if."""
        from reconciler.fleet.what_if import WhatIf  # noqa: PLC0415  a tenth of a second, which most commands don't pay

        return WhatIf(self.observed)

    def advance(self, observed: Observed) -> None:
        """To the cluster as it was seen next."""
        what_if = self.__dict__.get("what_if")
        self.__dict__.clear()
        self.observed = observed
        if what_if is not None:
            what_if.advance(observed)
            self.__dict__["what_if"] = what_if

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def nodes_of(self, pool: str) -> Sequence[Node]:
        """The nodes of a pool, by name."""
        return self._by_pool.get(pool, ())

    def pods_on(self, node: str) -> Sequence[Pod]:
        """The pods bound to a node, finished ones included, by namespace and name."""
        return self._by_node.get(node, ())

    def claims_of(self, pool: str) -> Sequence[NodeClaim]:
        """The NodeClaims of a pool, by name."""
        return self._claims.get(pool, ())

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.observed.nodes}

    @cached_property
    def _by_pool(self) -> dict[str, list[Node]]:
        found = defaultdict(list)
        for node in sorted(self.observed.nodes, key=lambda each: each.name):
            found[node.pool].append(node)
        return dict(found)

    @cached_property
    def _by_node(self) -> dict[str, list[Pod]]:
        found = defaultdict(list)
        for pod in self.observed.pods:
            if pod.node:
                found[pod.node].append(pod)
        for pods in found.values():
            pods.sort(key=lambda each: (each.metadata.namespace, each.name))
        return dict(found)

    @cached_property
    def _claims(self) -> dict[str, list[NodeClaim]]:
        found = defaultdict(list)
        for claim in sorted(self.observed.node_claims, key=lambda each: each.name):
            found[claim.metadata.labels.get(names.KARPENTER_POOL, "")].append(claim)
        return dict(found)
