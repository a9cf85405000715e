"""Admission of decisions: checks that apply to the decisions of every planner. The checks cover guards of another
cluster, suspension, freezes, nodes that others handle, claims of earlier planners, and the mode of the pool.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Decision, Hold, Label, Reason, Ref
from reconciler.model.plan.guard_verdict import DisruptionRecord
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.guards import ChangeGuard
from reconciler.plan.containment import Troubles
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import is_report_only
from reconciler.plan.guards.reasons import ObjectUnversioned, WrongCluster, guard_ref
from reconciler.plan.guards.removals import GuardContext, taken
from reconciler.plan.guards.set_aside import SetAsides
from reconciler.plan.guards.tally import ClusterMin, ClusterMinHolds, nodes_named
from reconciler.plan.nodes.ownership import why_opted_out, why_untouchable
from reconciler.plan.reasons import OfObject


class Admission:
    """Checks for the decisions of one plan. Mutable."""

    def __init__(self, inputs: Inputs, draft: Draft, troubles: Troubles) -> None:
        self._inputs = inputs
        self._draft = draft
        self._troubles = troubles
        self._freezes = Freezes(inputs, draft.fleet)
        self._set_asides = SetAsides(inputs, draft.fleet)
        self._cluster_min = ClusterMin(inputs, draft)
        self._gone: set[str] = set()  # nodes that this plan removes, for clusterMin

    def passed(self, verdict: Verdict) -> tuple[tuple[Decision, ...], tuple[Consequence, ...]]:
        """Decisions after the checks, and the consequences that remain possible."""
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
        except Exception as error:  # noqa: BLE001 - other decisions must be checked after any exception
            why = self._troubles.of_decision("guards", decision, error)
            return msgspec.structs.replace(decision, act=Hold(), reason=why)

    def _judged(self, stage: GuardContext, decision: Decision) -> Decision:
        held = self._why_not(stage, decision)
        if held is not None:
            return msgspec.structs.replace(decision, act=held[1], reason=held[0])
        would, about = is_report_only(self._inputs, decision), self._related(decision)
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
        """Why clusterMin forbids the decision. A node that is leaving already may go, unless the cluster lacks a
        resource of that node.
        """
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
        """Count the nodes that the decision removes or keeps, for later decisions."""
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
        """Whether nobody removes the node yet, in this plan or before."""
        return not node.is_being_removed and node.name not in self._gone

    def _related(self, decision: Decision) -> tuple[Ref, ...]:
        """Further objects of a node action: its NodeClaim, its NodePool, and its GpuPool if policies are custom
        resources. A person who describes one of these objects sees the action. An Event without a uid is not shown by
        kubectl describe.
        """
        fleet, subject = self._draft.fleet, decision.subject
        node = fleet.node(subject.name) if subject.kind == "Node" else None
        if node is None:
            return ()
        claim = fleet.claims_on(node.pool).get(node.name)
        refs = [Ref("NodeClaim", "", claim.name, claim.metadata.uid)] if claim is not None else []
        keys = (("NodePool", node.metadata.labels.get(names.KARPENTER_POOL, "")), ("GpuPool", decision.pool))
        pools = (self._pools[key] for key in keys if key in self._pools)
        refs += [Ref(each.kind, "", each.name, each.metadata.uid) for each in pools]
        return tuple(each for each in refs if each.uid)

    @cached_property
    def _pools(self) -> dict[tuple[str, str], Unstructured]:
        """NodePools and policies by kind and name."""
        observed = self._draft.fleet.observed
        return {(each.kind, each.name): each for each in (*observed.node_pools, *observed.policies)}


def is_blind(decision: Decision) -> bool:
    """Whether the write has no precondition that the API server checks."""
    if isinstance(decision.act, Hold):
        return False
    presumes = decision.act.presumes
    return not (presumes.absent or presumes.resource_version or presumes.fields or decision.subject.uid)


def _barred(decisions: Iterable[Decision], settled: Iterable[Decision]) -> frozenset[str]:
    """NodePools whose edit or deletion is held."""
    return frozenset(
        before.subject.name
        for before, after in zip(decisions, settled, strict=True)
        if before.subject.kind == "NodePool" and isinstance(after.act, Hold) and not isinstance(before.act, Hold)
    )


# --- Cluster UID of guards: in another cluster, no action is carried out on guarded objects.

_SHOWN = 8  # characters of a uid; usually enough to distinguish two clusters


class GuardClusterMessages(msgspec.Struct, frozen=True):
    """Messages about the cluster UIDs of guards."""

    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def of_another_cluster(inputs: Inputs, pool: str) -> Reason | None:
    """Why no action is allowed for the pool: its guard is for another cluster. None otherwise."""
    for guard in inputs.desired.guards:
        if {"*", pool} & set(guard.spec.pool_names) and is_elsewhere(inputs, guard):
            wanted, found = _uids(inputs, guard)
            facts = WrongCluster(guard=guard_ref(guard.name), wanted=wanted, found=found)
            return Reason(facts, guard.origin("spec.clusterUID"))
    return None


def guard_cluster_messages(inputs: Inputs) -> GuardClusterMessages:
    """Messages about each guard that is not suspended."""
    warnings, notices = [], []
    for guard in inputs.desired.guards:
        if guard.spec.suspend:
            continue
        title = f"ChangeGuard/{guard.name}"
        if is_elsewhere(inputs, guard):
            wanted, found = _uids(inputs, guard)
            where = "" if "*" in guard.spec.pool_names else f" for {', '.join(sorted(guard.spec.pool_names))}"
            warnings.append(f"{title} is for cluster {wanted}, this is {found}: no action would be carried out{where}")
        elif guard.spec.cluster_uid and not inputs.observed.cluster_uid:
            notices.append(
                f"{title} is for cluster {guard.spec.cluster_uid[:_SHOWN]}, and the UID of this cluster is unknown"
            )
    return GuardClusterMessages(tuple(warnings), tuple(notices))


def is_elsewhere(inputs: Inputs, guard: Declared[ChangeGuard]) -> bool:
    """Whether the guard is for another cluster."""
    wanted, found = guard.spec.cluster_uid, inputs.observed.cluster_uid
    return not guard.spec.suspend and bool(wanted and found) and wanted != found


def _uids(inputs: Inputs, guard: Declared[ChangeGuard]) -> tuple[str, str]:
    """The wanted and the actual UID, shortened if they still differ."""
    wanted, found = guard.spec.cluster_uid or "", inputs.observed.cluster_uid
    short = wanted[:_SHOWN], found[:_SHOWN]
    return short if short[0] != short[1] else (wanted, found)


# --- One action for each subject: which of several actions waits for the next plan.
#
# A Label waits for any other action on its subject. Among other actions, the first planner's goes on, and later
# planners' actions are held by admission. Labels are decided after the guards: if a guard holds the other action, the
# Label goes on.


class TakesTurns(OfObject, frozen=True):
    template = (
        "this plan already has an action of the planner {other} on {object}, and a plan has at most one action on each "
        "object. The action of the planner {planner} follows in the next plan."
    )

    other: str  # the planner that acts
    planner: str  # the planner that waits


REASONS = (TakesTurns,)


def waits_for(decision: Decision, other: str) -> Reason:
    """Reason of a decision that waits for another planner."""
    facts = TakesTurns(object=decision.subject, other=other, planner=decision.planner)
    return Reason(facts, decision.reason.origin)


def one_action_each(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """The decisions, with labels held whose subjects have another action or an earlier label."""
    labels = {each.subject for each in decisions if isinstance(each.act, Label)}
    if not labels:
        return tuple(decisions)
    acts: dict[Ref, Decision] = {}
    for each in decisions:
        if each.subject in labels and not isinstance(each.act, Hold) and _goes_before(each, acts.get(each.subject)):
            acts[each.subject] = each
    return tuple(_settled(each, acts.get(each.subject)) for each in decisions)


def _goes_before(decision: Decision, other: Decision | None) -> bool:
    return other is None or (isinstance(other.act, Label) and not isinstance(decision.act, Label))


def _settled(decision: Decision, acts: Decision | None) -> Decision:
    if acts is None or acts is decision or isinstance(decision.act, Hold):
        return decision
    return msgspec.structs.replace(decision, act=Hold(), reason=waits_for(decision, acts.planner))
