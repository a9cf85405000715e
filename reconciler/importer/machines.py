"""The live machines of each NodePool, by what their Nodes and NodeClaims say of them."""

from collections import defaultdict

import msgspec

from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaimStatus
from reconciler.model.cluster.node import NodeStatus
from reconciler.model.cluster.observed import Observed
from reconciler.model.quantity import Quantity


class ImportedMachine(msgspec.Struct, frozen=True):
    """One machine; a NodeClaim tells of it as long as there is no Node."""

    name: str
    labels: dict[str, str]
    capacity: dict[str, str]  # or what is allocatable, where that is more: some providers tell no capacity

    @property
    def instance_type(self) -> str:
        return self.labels.get(names.INSTANCE_TYPE, "")

    @property
    def capacity_type(self) -> str:
        return self.labels.get(names.CAPACITY_TYPE, "")


def machines(observed: Observed) -> dict[str, tuple[ImportedMachine, ...]]:
    """By NodePool, sorted by name."""
    imported_machines: dict[str, list[ImportedMachine]] = defaultdict(list)
    for node in observed.nodes:
        imported_machines[node.pool].append(ImportedMachine(node.name, node.metadata.labels, _amounts(node.status)))
    seen = {node.name for node in observed.nodes}
    for claim in observed.node_claims:
        if claim.status.node_name not in seen:
            pool = claim.metadata.labels.get(names.KARPENTER_POOL, "")
            imported_machines[pool].append(ImportedMachine(claim.name, claim.metadata.labels, _amounts(claim.status)))
    return {pool: tuple(sorted(each, key=lambda machine: machine.name)) for pool, each in imported_machines.items()}


def _amounts(status: NodeStatus | NodeClaimStatus) -> dict[str, str]:
    resources = {**status.allocatable, **status.capacity}
    lists = (status.capacity, status.allocatable)
    return {each: max((of[each] for of in lists if each in of), key=_milli) for each in resources}


def _milli(amount: str) -> int:
    try:
        return Quantity.parse(amount).milli
    except ValueError:
        return 0
