"""Disruptions of a decision: what the decision removes or disrupts if carried out. A match over kinds and
verbs.

Verbs without a case disrupt nothing: creating objects, adding capacity, removing a taint, edits in place. A new
planner needs a case only if it has a new verb.

A node that leaves for good counts as a removed node if no GPU on it is in use, and by its GPUs in use otherwise. A
node that is replaced, or only drained, counts by its GPUs in use alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Apply, Decision, Delete, Evict, Ref, Taint
from reconciler.model.plan.guard_verdict import DisruptionRecord
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.capacity.requests import SmartPodIdentity
from reconciler.plan.sums import gpus_in_use

# --- Lookups of the guards for one plan: nodes, NodeClaims, pods, and consequences of edits.

CLAIMS = "nodeclaims.karpenter.sh"


class GuardContext:
    """What decisions are checked against."""

    def __init__(self, fleet: Fleet, inputs: Inputs, consequences: Iterable[Consequence] = ()) -> None:
        self.fleet = fleet
        self.now = inputs.now
        self.identity = SmartPodIdentity(inputs.desired)
        self._consequences = tuple(consequences)

    @property
    def observed(self) -> Observed:
        return self.fleet.observed

    def brought_about(self, node_pool: str) -> Sequence[Consequence]:
        """Consequences in Karpenter of editing or deleting a NodePool in this plan."""
        return [each for each in self._consequences if each.node_pool == node_pool and each.cause == "change"]

    def mark(self, node: Node, *, goes: bool) -> DisruptionRecord:
        """Record of a node as it is now. If pods could not be read, all its GPUs count as used."""
        in_use = node.gpus if self.observed.why_unread("pods") else gpus_in_use(self.fleet, [node])
        claim = self.claim_of(node.name)
        uid = claim.metadata.uid if claim else ""
        return DisruptionRecord(self.now, "Node", node.name, node.metadata.uid, uid, node.pool, goes, in_use)

    def claim_of(self, node: str) -> NodeClaim | None:
        """NodeClaim of a node. For a node that has not appeared yet, `node` is the name of the NodeClaim."""
        return self._claims_by_node.get(node) or self.claims.get(node)

    def is_leaving(self, mark: DisruptionRecord) -> bool:
        """Whether the recorded object still shows a sign of leaving."""
        node = self.fleet.node(mark.name)
        if node is not None and node.metadata.uid == mark.uid and node.is_being_removed:
            return True
        claim = self._claims_by_uid.get(mark.claim) if mark.claim else None
        return claim is not None and (claim.metadata.leaving or claim.says("Drifted"))

    @cached_property
    def claims(self) -> dict[str, NodeClaim]:
        return {each.name: each for each in self.observed.node_claims}

    @cached_property
    def _claims_by_node(self) -> dict[str, NodeClaim]:
        return {each.status.node_name: each for each in self.observed.node_claims if each.status.node_name}

    @cached_property
    def _claims_by_uid(self) -> dict[str, NodeClaim]:
        return {each.metadata.uid: each for each in self.observed.node_claims if each.metadata.uid}

    @cached_property
    def pods(self) -> dict[tuple[str, str], Pod]:
        return {(each.metadata.namespace, each.name): each for each in self.observed.pods}


class Removal(msgspec.Struct, frozen=True, gc=False):
    """One disrupted node, pod or NodePool."""

    mark: DisruptionRecord
    part: str  # kind of disruption, as text after a number
    node: str = ""  # of a pod: its node

    @property
    def weighs(self) -> bool:
        """Whether any limit counts the disruption."""
        return self.mark.goes or self.mark.gpus > 0 or self.mark.kind == "NodePool"


_EDITED: dict[Fate, str] = {
    "removed": "drifted while empty",
    "replaced": "evicted",
    "blocked": "once their blockers are gone",
    "deleted": "with their NodePool",
}


def taken(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    """Everything that the decision removes or disrupts. The first case that matches counts."""
    match decision.subject.kind, decision.act:
        case "Node", Delete():
            yield from _node(stage, decision, "deleted")
        case "Node", Taint(key=names.DELETION_TIME, value=str()):
            yield from _node(stage, decision, "scaled down")
        case "Node", Taint(key=names.DRAINING, value=str()):
            yield from _node(stage, decision, "drained")
        case "Node", Taint(effect="NoExecute", value=str()):
            yield from _node(stage, decision, "evicted by a taint", goes=False)
        case "NodeClaim", Delete():
            yield from _node_of_claim(stage, decision)
        case "Pod", Delete() | Evict():
            yield from _pods(stage, decision)
        case "NodePool", Apply():
            yield from _edit(stage, decision)
        case "NodePool", Delete():
            yield from _node_pool(stage, decision)


def _node(stage: GuardContext, decision: Decision, part: str, *, goes: bool = True) -> Iterator[Removal]:
    node = stage.fleet.node(decision.subject.name)
    if node is not None:
        yield Removal(stage.mark(node, goes=goes), part)


def _node_of_claim(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    claim = stage.claims.get(decision.subject.name)
    node = stage.fleet.node(claim.status.node_name) if claim else None
    if node is not None:
        yield Removal(stage.mark(node, goes=True), "deleted")


def _pods(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    """The subject, and pods that leave with it."""
    for ref in decision.refs:
        yield from _pod(stage, ref, decision.pool)


def _pod(stage: GuardContext, ref: Ref, asked_for: str) -> Iterator[Removal]:
    pod = stage.pods.get((ref.namespace, ref.name))
    # A smart pod is no workload. In other namespaces the labels of smart pods prove nothing.
    if pod is None or not pod.node or pod.is_finished or stage.identity.is_smart(pod):
        return
    node = stage.fleet.node(pod.node)
    pool = node.pool if node else asked_for
    gpus = stage.fleet.gpu_requests.of(pod)
    yield Removal(
        DisruptionRecord(stage.now, "Pod", pod.title, pod.metadata.uid, pool=pool, gpus=gpus), "evicted", pod.node
    )


def _edit(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    for each in stage.brought_about(decision.subject.name):
        if each.fate in _EDITED:
            yield from _fate(stage, each)


def _node_pool(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    subject = decision.subject
    yield Removal(
        DisruptionRecord(stage.now, "NodePool", subject.name, subject.uid, pool=decision.pool or subject.name),
        "deleted",
    )
    yield from _edit(stage, decision)


def _fate(stage: GuardContext, consequence: Consequence) -> Iterator[Removal]:
    pool = consequence.pool or consequence.node_pool
    for name, share in zip(consequence.nodes, consequence.shares, strict=True):
        # A blocked node without pods counts as removed, not as replaced, because budgets may open at any time.
        goes = consequence.fate in {"removed", "deleted"} or (consequence.fate == "blocked" and not share.pods)
        node, claim = stage.fleet.node(name), stage.claim_of(name)
        uids = (node.metadata.uid if node else "", claim.metadata.uid if claim else "")
        yield Removal(
            DisruptionRecord(stage.now, "Node", name, *uids, pool, goes, share.gpus_in_use), _EDITED[consequence.fate]
        )
