"""The nodes of a NodePool as they are found: the NodeClaim, its Node once that has appeared, and the pods on it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.resource_quantity import whole_number
from reconciler.plan.karpenter.durations import nanoseconds
from reconciler.plan.sums.cost import MachineType, machine_of


class Surveyed(msgspec.Struct, frozen=True, gc=False):
    """A node as it is found; at least one of claim and node is there."""

    claim: NodeClaim | None
    node: Node | None
    pods: Sequence[Pod]
    now: Instant

    @property
    def name(self) -> str:
        if self.node is not None:
            return self.node.name
        return (self.claim.status.node_name or self.claim.name) if self.claim is not None else ""

    @property
    def gpus(self) -> int:
        if self.node is not None:
            return self.node.gpus
        return whole_number(self.claim.status.allocatable.get(names.NVIDIA_GPU, "0")) if self.claim is not None else 0

    @property
    def capacity(self) -> Mapping[str, str]:
        """What it has, pods or not; of a machine that has not joined yet, what is expected."""
        if self.node is not None and self.node.status.capacity:
            return self.node.status.capacity
        return self.claim.status.capacity if self.claim is not None else {}

    @property
    def machine(self) -> MachineType | None:
        """What is paid for; nothing before it was bought."""
        if self.node is not None:
            return machine_of(self.node.metadata.labels)
        is_bought = self.claim is not None and self.claim.status.provider_id
        return machine_of(self.claim.metadata.labels) if self.claim is not None and is_bought else None

    @property
    def is_leaving(self) -> bool:
        node, claim = self.node, self.claim
        going = node is not None and (node.metadata.leaving or node.taint(names.DISRUPTED) is not None)
        return going or (claim is not None and (claim.metadata.leaving or claim.says("InstanceTerminating")))

    @property
    def is_kept(self) -> bool:
        one = self.node or self.claim
        return one is not None and one.metadata.annotations.do_not_disrupt == "true"

    @property
    def bound_seconds(self) -> int | None:
        """The longest that its pods can hold it up, once it is deleted."""
        written = self.claim.spec.termination_grace_period if self.claim is not None else ""
        try:
            return -(-nanoseconds(written) // 1_000_000_000)
        except ValueError:
            return None


class NodePoolSurvey(msgspec.Struct, frozen=True):
    """Where to look: one NodePool of a fleet, at one moment."""

    fleet: Fleet
    node_pool: str
    now: Instant

    def of_claim(self, claim: NodeClaim) -> Surveyed:
        node = self.fleet.node(claim.status.node_name) if claim.status.node_name else None
        name = claim.status.node_name or claim.name
        return Surveyed(claim, node, self.fleet.pods_on(name), self.now)

    def all(self) -> Iterator[Surveyed]:
        """Every NodeClaim, and every node of the NodePool that no NodeClaim names."""
        claims = self.fleet.claims_of(self.node_pool)
        for claim in claims:
            yield self.of_claim(claim)
        named = {claim.status.node_name for claim in claims}
        for node in self.fleet.nodes_of(self.node_pool):
            if node.name not in named and node.metadata.labels.get(names.KARPENTER_POOL) == self.node_pool:
                yield Surveyed(None, node, self.fleet.pods_on(node.name), self.now)

    def machines(self) -> Counter[MachineType]:
        """What is paid for."""
        return Counter(surveyed_node.machine for surveyed_node in self.all() if surveyed_node.machine is not None)
