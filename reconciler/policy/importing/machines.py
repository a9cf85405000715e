"""The live machines of each NodePool, by what their Nodes and NodeClaims say of them."""

from collections import defaultdict

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed


class Machine(msgspec.Struct, frozen=True):
    """One machine; a NodeClaim tells of it as long as there is no Node."""

    name: str
    labels: dict[str, str]
    capacity: dict[str, str]

    @property
    def instance_type(self) -> str:
        return self.labels.get(names.INSTANCE_TYPE, "")

    @property
    def capacity_type(self) -> str:
        return self.labels.get(names.CAPACITY_TYPE, "")


def machines(observed: Observed) -> dict[str, tuple[Machine, ...]]:
    """By NodePool, sorted by name."""
    found: dict[str, list[Machine]] = defaultdict(list)
    for node in observed.nodes:
        found[node.pool].append(Machine(node.name, node.metadata.labels, node.status.capacity))
    seen = {node.name for node in observed.nodes}
    for claim in observed.node_claims:
        if claim.status.node_name not in seen:
            pool = claim.metadata.labels.get(names.KARPENTER_POOL, "")
            found[pool].append(Machine(claim.name, claim.metadata.labels, claim.status.capacity))
    return {pool: tuple(sorted(each, key=lambda machine: machine.name)) for pool, each in found.items()}
