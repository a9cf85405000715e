"""The one door that every decision passes, whatever its planner thought: a guard for another cluster, what is suspended
or frozen, others' hands, what another planner does in the same plan, and the mode of the pool."""

from collections.abc import Iterable, Sequence

import msgspec

from reconciler.model.cluster.node import Node
from reconciler.model.plan.action import Hold, Label
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.disruption_record import DisruptionRecord
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Reason
from reconciler.plan.containment import Troubles
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.guards.cluster_identity import of_another_cluster
from reconciler.plan.guards.cluster_min import ClusterMin, ClusterMinHolds, nodes_named
from reconciler.plan.guards.context import GuardContext
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import is_report_only
from reconciler.plan.guards.one_action import waits_for
from reconciler.plan.guards.reasons import ObjectUnversioned
from reconciler.plan.guards.related_objects import RelatedObjects
from reconciler.plan.guards.removals import taken
from reconciler.plan.guards.set_aside import SetAsides
from reconciler.plan.nodes.ownership import why_opted_out, why_untouchable


class Admission:
    """What the decisions of one plan are held against."""

    def __init__(self, inputs: Inputs, draft: Draft, troubles: Troubles) -> None:
        self._inputs = inputs
        self._draft = draft
        self._troubles = troubles
        self._freezes = Freezes(inputs, draft.fleet)
        self._set_asides = SetAsides(inputs, draft.fleet)
        self._about = RelatedObjects(draft.fleet)
        self._cluster_min = ClusterMin(inputs, draft)
        self._gone: set[str] = set()  # nodes that this plan takes, as they count against clusterMin

    def passed(self, verdict: Verdict) -> tuple[tuple[Decision, ...], tuple[Consequence, ...]]:
        """Its decisions as they may be, and those consequences that can still come of them."""
        stage = GuardContext(self._draft.fleet, self._inputs, verdict.consequences)
        decisions = tuple(self._settled(stage, each) for each in verdict.decisions)
        barred = _barred(verdict.decisions, decisions)
        left = (each for each in verdict.consequences if each.cause == "standing" or each.node_pool not in barred)
        return decisions, tuple(left)

    def _settled(self, stage: GuardContext, decision: Decision) -> Decision:
        if isinstance(decision.act, Hold):
            return decision
        try:
            return self._judged(stage, decision)
        except Exception as error:  # noqa: BLE001 - whatever it is, other decisions pass or not by themselves
            why = self._troubles.of_decision("guards", decision, error)
            return msgspec.structs.replace(decision, act=Hold(), reason=why)

    def _judged(self, stage: GuardContext, decision: Decision) -> Decision:
        held = self._why_not(stage, decision)
        if held is not None:
            return msgspec.structs.replace(decision, act=held[1], reason=held[0])
        would, about = is_report_only(self._inputs, decision), self._about.of(decision)
        settled = msgspec.structs.replace(decision, would=would, about=about)
        self._draft.claim(settled)
        self._count(stage, settled)
        return settled

    def _why_not(self, stage: GuardContext, decision: Decision) -> tuple[Reason, Hold] | None:
        if why := of_another_cluster(self._inputs, decision.pool):
            return why, Hold()
        takes = list(taken(stage, decision))
        if why := self._troubles.why_not(decision, takes_away=bool(takes)):
            return why, Hold()
        marks = [each.mark for each in takes if each.mark.kind == "Node"]
        if why := self._set_asides.why_not(decision, {each.name for each in marks}):
            return why, Hold()
        if still := self._freezes.why_still(decision, frozenset(each.name for each in marks)):
            return still
        why = why_untouchable(self._draft.fleet, decision)
        if why is not None:
            return why, Hold()
        opted_out = why_opted_out(self._draft.fleet, decision, self._inputs.now) if marks else None
        if opted_out is not None:
            return opted_out.reason, Hold(opted_out.until)
        if is_blind(decision):
            return Reason(ObjectUnversioned(object=decision.subject), decision.reason.origin), Hold()
        other = self._draft.claimed_by(decision.subject)
        if other and not isinstance(decision.act, Label):
            return waits_for(decision, other), Hold()
        below = self._below_cluster_min(decision, marks)
        return (below, Hold()) if below is not None else None

    def _below_cluster_min(self, decision: Decision, marks: Sequence[DisruptionRecord]) -> Reason | None:
        """A node that is on its way out already may go unless the cluster lacks something that the node has."""
        if not self._cluster_min.is_limited:
            return None
        nodes = list(nodes_named(self._draft.fleet, {each.name for each in marks if each.goes}))
        lack = self._cluster_min.why_not(*(each for each in nodes if self._is_there(each)))
        lack = lack or next((found for each in nodes if (found := self._cluster_min.why_kept(each))), None)
        if lack is None:
            return None
        facts = ClusterMinHolds(
            object=decision.subject, resource=lack.resource, left=lack.left, least=lack.least, policy=lack.policy
        )
        return Reason(facts, lack.origin)

    def _count(self, stage: GuardContext, decision: Decision) -> None:
        """What it takes is missing for those that come after it, and what it gives back is not."""
        if decision.would or not self._cluster_min.is_limited:
            return
        fleet, subject = self._draft.fleet, decision.subject
        node = fleet.node(subject.name) if subject.kind == "Node" else None
        if node is not None and node.is_being_removed and not self._draft.leaves(node):
            self._cluster_min.give(node)
        leaving = {each.mark.name for each in taken(stage, decision) if each.mark.kind == "Node" and each.mark.goes}
        for each in nodes_named(fleet, leaving):
            if not each.is_being_removed and each.name not in self._gone:
                self._gone.add(each.name)
                self._cluster_min.take(each)

    def _is_there(self, node: Node) -> bool:
        """Whether nobody takes the node away yet, in this plan or before it."""
        return not node.is_being_removed and node.name not in self._gone


def is_blind(decision: Decision) -> bool:
    """Whether the write presumes nothing that the API server checks."""
    if isinstance(decision.act, Hold):
        return False
    presumes = decision.act.presumes
    return not (presumes.absent or presumes.resource_version or presumes.fields or decision.subject.uid)


def _barred(decisions: Iterable[Decision], settled: Iterable[Decision]) -> frozenset[str]:
    """NodePools that were to be edited or deleted, and are not."""
    return frozenset(
        before.subject.name
        for before, after in zip(decisions, settled, strict=True)
        if before.subject.kind == "NodePool" and isinstance(after.act, Hold) and not isinstance(before.act, Hold)
    )
