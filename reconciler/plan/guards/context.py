"""Owner of what the guards of one plan have looked up: nodes, NodeClaims and pods, and what edits bring about."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.disruption_record import DisruptionRecord
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.capacity.identity import SmartPodIdentity
from reconciler.plan.sums.usage import gpus_in_use

CLAIMS = "nodeclaims.karpenter.sh"


class GuardContext:
    """What decisions are looked at against."""

    def __init__(self, fleet: Fleet, inputs: Inputs, consequences: Iterable[Consequence] = ()) -> None:
        self.fleet = fleet
        self.now = inputs.now
        self.identity = SmartPodIdentity(inputs.desired)
        self._consequences = tuple(consequences)

    @property
    def observed(self) -> Observed:
        return self.fleet.observed

    def brought_about(self, node_pool: str) -> Sequence[Consequence]:
        """What the edit or deletion of a NodePool in this plan makes Karpenter do."""
        return [each for each in self._consequences if each.node_pool == node_pool and each.cause == "change"]

    def mark(self, node: Node, *, goes: bool) -> DisruptionRecord:
        """A node as it is now. Where pods could not be read, all its GPUs are taken for used."""
        in_use = node.gpus if self.observed.why_unread("pods") else gpus_in_use(self.fleet, [node])
        claim = self.claim_of(node.name)
        uid = claim.metadata.uid if claim else ""
        return DisruptionRecord(self.now, "Node", node.name, node.metadata.uid, uid, node.pool, goes, in_use)

    def claim(self, name: str) -> NodeClaim | None:
        return self._claims.get(name)

    def claim_of(self, node: str) -> NodeClaim | None:
        """The NodeClaim of a node; of one that has not appeared yet, the NodeClaim's own name serves."""
        return self._claims_by_node.get(node) or self._claims.get(node)

    def claim_with(self, uid: str) -> NodeClaim | None:
        return self._claims_by_uid.get(uid)

    def pod(self, namespace: str, name: str) -> Pod | None:
        return self._pods.get((namespace, name))

    def is_leaving(self, mark: DisruptionRecord) -> bool:
        """Whether what was marked shows a sign of it still: it is there, and is being taken away."""
        node = self.fleet.node(mark.name)
        if node is not None and node.metadata.uid == mark.uid and node.is_being_removed:
            return True
        claim = self.claim_with(mark.claim) if mark.claim else None
        return claim is not None and (claim.metadata.leaving or claim.says("Drifted"))

    @cached_property
    def _claims(self) -> dict[str, NodeClaim]:
        return {each.name: each for each in self.observed.node_claims}

    @cached_property
    def _claims_by_node(self) -> dict[str, NodeClaim]:
        return {each.status.node_name: each for each in self.observed.node_claims if each.status.node_name}

    @cached_property
    def _claims_by_uid(self) -> dict[str, NodeClaim]:
        return {each.metadata.uid: each for each in self.observed.node_claims if each.metadata.uid}

    @cached_property
    def _pods(self) -> dict[tuple[str, str], Pod]:
        return {(each.metadata.namespace, each.name): each for each in self.observed.pods}
