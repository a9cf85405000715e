"""Explanation of a node."""

from collections.abc import Iterator
from typing import Any

from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.desired import Declared
from reconciler.model.instant import format_moment, timestamp
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Decision, Evict, Hold, Label, Reason
from reconciler.model.plan.evaluation import DrainEligibility, DrainReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.plan.draft import Draft
from reconciler.plan.drain.codes.blockers import BeingDrained, PodWithoutPlace, ScaledDown
from reconciler.plan.drain.placement_search import keepers, pod_of
from reconciler.plan.drain.reasons import PLANNER as DRAIN
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.holds.standstill import PLANNER as TAINTS
from reconciler.plan.holds.standstill import STOPPED
from reconciler.plan.nodes.ownership import opt_out, untouchable
from reconciler.plan.pressure.ledgers import pressure_policies
from reconciler.plan.scaling.reasons import PLANNER, MarkedNodeHeld, SurplusEmptyNode
from reconciler.plan.sums import gpus_in_use
from reconciler.report.explain.about import (
    ExplainedObject,
    Explanation,
    Row,
    UnknownSubject,
    decision_sentence,
    decisions_about,
    fate_of,
    freeze_rows,
    guard_rows,
    placed,
    unread,
    would,
    would_be,
)
from reconciler.report.explain.counterfactuals.changes import flipped
from reconciler.report.explain.pressure import pressure_rows
from reconciler.report.explain.scale_down import (
    ScaleDownForecast,
    forecast_scale_down,
    is_still,
    kept_words,
    stop_rows,
    why_rows,
)
from reconciler.report.sentences import sentence
from reconciler.report.wording import counted

_BY_TAINT = frozenset({BeingDrained, ScaledDown})  # only shown if a planner continues with the taint
OWN: dict[Fate, str] = {"scaled": PLANNER, "drained": DRAIN}  # planner that deletes the node, unless Karpenter does


def about_node(scene: PlanningResult, name: str) -> Explanation:
    """All known facts about the node."""
    node = scene.fleet.node(name)
    if node is None:
        raise UnknownSubject(unread(scene, "nodes") or f"there is no node {name}")
    claim = scene.fleet.claims_on(node.pool).get(name)
    claimed = (ExplainedObject("NodeClaim", claim.name),) if claim is not None else ()
    decisions = decisions_about(scene, ExplainedObject("Node", name), *claimed)
    fates = [own for each in scene.plan.consequences if (own := each.only((name,))) is not None]
    scaled = forecast_scale_down(scene, node)
    # Existing taints of the node come before planned changes.
    ordered = sorted(decisions, key=lambda each: each.planner != TAINTS)
    outcome = [_outcome(scene, scaled, each) for each in ordered if not isinstance(each.act, Label)]
    # Our own actions on the node are described by the decision; this plan may act only on its pods.
    is_told = {each.planner for each in decisions}
    others = (each for each in fates if OWN.get(each.fate) not in is_told)
    outcome += [would_be(scene, each, f"The node {fate_of(scene, each)}.") for each in others]
    labels = tuple(decision_sentence(scene, each) for each in decisions if isinstance(each.act, Label))
    rows = (
        *(why_rows(scaled) if scaled else ()),
        *_why(scene, node, fates),
        *_drained(scene, node),
        *_evicted(scene, node),
        *pressure_rows(scene, node),
        *_karpenter(scene, node),
        *_in_play(scene, node),
        *(("labelled", each) for each in labels if outcome),
        *(stop_rows(scaled) if scaled else ()),
    )
    outcome = outcome or list(labels)
    text = " ".join(outcome) or "No change is planned for the node."
    return Explanation(f"node/{name}", _headline(scene, node), text, rows, decisions)


def _evicted(scene: PlanningResult, node: Node) -> Iterator[Row]:
    """The pods that this plan evicts from the node."""
    here = {(pod.metadata.namespace, pod.name) for pod in scene.fleet.pods_on(node.name)}
    evicted = (ref for each in scene.plan.decisions if isinstance(each.act, Evict) for ref in each.refs)
    requested = [ref.title for ref in evicted if (ref.namespace, ref.name) in here]
    yield from _first_rows("evicts", requested)


def _first_rows(label: str, texts: list[str]) -> Iterator[Row]:
    """One row for each of the first texts, and the number of others."""
    yield from ((label, text) for text in texts[:MOST_LISTED])
    if more := texts[MOST_LISTED:]:
        yield label, f"and {len(more)} more"


def _outcome(scene: PlanningResult, scaled: ScaleDownForecast | None, decision: Decision) -> str:
    """The planned scale-down of the node, in short: the rows have the details."""
    at = scaled.own.at if scaled and scaled.own else None
    if scaled is None or at is None or scaled.is_still or not _announces(decision):
        return decision_sentence(scene, decision)
    if kept := kept_words(scaled):
        return f"{would(scene, decision)}Marked; not deleted while {kept}."
    if at <= scene.inputs.now:
        return decision_sentence(scene, decision)
    begins = would(scene, decision)
    return f"{begins}{'w' if begins else 'W'}ill be deleted {format_moment(at, scene.inputs.now)} if still empty."


def _announces(decision: Decision) -> bool:
    """Whether the decision says when the node is scaled down, or why not yet."""
    if decision.planner not in {PLANNER, TAINTS}:
        return False
    is_own = isinstance(decision.reason.facts, (SurplusEmptyNode, MarkedNodeHeld, *STOPPED))
    return not isinstance(decision.act, Hold) or is_own


def _headline(scene: PlanningResult, node: Node) -> str:
    kind = " ".join(part for part in (node.instance_type, node.capacity_type) if part)
    ready = () if node.is_ready else ("not ready",)
    return ", ".join((node.pool or "of no pool", kind, *_load(scene, node), *ready))


def _load(scene: PlanningResult, node: Node) -> tuple[str, ...]:
    if why := unread(scene, "pods"):
        return (counted(node.gpus, "GPU"), f"GPUs in use unknown ({why})")
    pods = [pod for pod in scene.fleet.pods_on(node.name) if pod.counts]
    used = f"{gpus_in_use(scene.fleet, [node])} of {node.gpus} GPUs in use"
    return (used, counted(len(pods), "pod") if pods else "empty")


def _why(scene: PlanningResult, node: Node, fates: list[Consequence]) -> Iterator[Row]:
    causes = {each.node_pool for each in fates if each.cause == "change" and each.fate not in OWN}
    for decision in scene.plan.decisions:
        if decision.subject.kind == "NodePool" and decision.subject.name in causes:
            yield "why", decision_sentence(scene, decision)
    if reason := untouchable(node):
        yield "not acted on", sentence(reason)
    elif opted_out := opt_out(node, scene.inputs.now):
        yield "not acted on", sentence(opted_out.reason)
    pool = scene.inputs.desired.pool(node.pool)
    if pool is None:
        yield "pool", f"there is no GpuPool {node.pool}" if node.pool else "the node has no pool label"
    else:
        yield "pool", f"GpuPool/{pool.name}, mode {pool.spec.mode}, {placed(pool.origin())}"


def _karpenter(scene: PlanningResult, node: Node) -> Iterator[Row]:
    claim = next((each for each in scene.fleet.claims_of(node.pool) if each.status.node_name == node.name), None)
    if claim is None:
        why = scene.inputs.observed.why_unread("nodeclaims.karpenter.sh")
        yield "Karpenter", f"unknown: {why}" if why else "no NodeClaim for this node"
        return
    after = claim.spec.expire_after
    expires = "never expires" if after == "Never" else f"expires {after} after its creation"
    yield "Karpenter", f"NodeClaim/{claim.name}: {_drifted(claim)}, {expires}"


def _drifted(claim: NodeClaim) -> str:
    condition = claim.condition("Drifted")
    if condition is None or condition.status != "True":
        return "not drifted"
    since = f" since {condition.last_transition_time}" if condition.last_transition_time else ""
    return f"drifted ({condition.reason}){since}"


def _drained(scene: PlanningResult, node: Node) -> Iterator[Row]:
    """Result of the drain evaluation of the node."""
    drain = _drain_policy(scene, node)
    if drain is not None and drain.spec.suspend:
        yield "drained", f"no: DrainPolicy/{drain.name} is suspended, {placed(drain.origin('spec.suspend'))}"
    for each in scene.plan.report(DrainReport).weighed:
        if each.node != node.name or (type(each.reason.facts) in _BY_TAINT and is_still(scene, node)):
            continue
        since = f" Candidate since {timestamp(each.since)}." if each.since is not None else ""
        place = placed(each.reason.origin)
        is_under_way = isinstance(each.reason.facts, BeingDrained)
        state = "candidate" if each.is_candidate else "in progress" if is_under_way else "no"
        yield "drained", f"{state}: {sentence(each.reason)}{since} {place}".rstrip()
        if each.tried is not None:
            yield "last tried", _last_tried(each)
        yield from _keeping_rows(scene, each)
        if not is_under_way and (change := changes_of(scene.inputs, each)):
            yield "drained if", change


def _last_tried(weighed: DrainEligibility) -> str:
    """When placement of its pods failed last, and why, if this plan has another reason."""
    tried = weighed.tried
    if tried is None:
        return "never"
    since = f" since {timestamp(tried.since)}" if tried.since != tried.at else ""
    text = "" if tried.reason == weighed.reason else f": {sentence(tried.reason)}"
    return f"search for places for the pods at {timestamp(tried.at)}, without success{since}{text}"


def _in_play(scene: PlanningResult, node: Node) -> Iterator[Row]:
    desired = scene.inputs.desired
    drain = _drain_policy(scene, node)
    scaling = (each for each in desired.provisioners if each.spec.pool_name == node.pool)
    provisioner = min(scaling, key=_active_first, default=None)
    undrained = "no DrainPolicy" if node.pool in pressure_policies(desired) else "no DrainPolicy: pods are not moved"
    parts = [
        _policy_words(provisioner) if provisioner else "no NodeProvisioner",
        _policy_words(drain) if drain else undrained,
    ]
    yield "policies", "; ".join(parts)
    ours = [
        f"{taint.key}={taint.value}:{taint.effect}" for taint in node.spec.taints if taint.key.startswith(names.OURS)
    ]
    if ours:
        yield "taints", f"{', '.join(ours)}"
    yield from freeze_rows(Freezes(scene.inputs, scene.fleet).of_node(node.name))
    yield from guard_rows(scene, node.pool)


def _drain_policy(scene: PlanningResult, node: Node) -> Declared[DrainPolicy] | None:
    """The DrainPolicy of the node's pool; if none is active, a suspended one."""
    drains = (each for each in scene.inputs.desired.drains if {"*", node.pool} & set(each.spec.pool_names))
    return min(drains, key=_active_first, default=None) if node.pool else None


def _active_first(policy: Declared[Any]) -> tuple[bool, str]:
    return policy.spec.suspend, policy.name


def _policy_words(policy: Declared[Any]) -> str:
    return f"{policy.kind}/{policy.name}{', suspended,' if policy.spec.suspend else ''} {placed(policy.origin())}"


# --- Pods that block a drain of the node: one row per pod, up to a limit.

MOST_LISTED = 10


def _blocking_reasons(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    """Empty if the reason of the node already says the same."""
    reasons = _held(scene, weighed) if isinstance(weighed.reason.facts, BeingDrained) else _keep(scene, weighed)
    return reasons if reasons != [weighed.reason] else []


def _keep(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    if weighed.is_candidate:
        return []
    reasons = keepers(scene.inputs, Draft(scene.fleet, scene.inputs.desired), weighed.node)
    # A plan counts nodes without capacity once for equal pods; here the count is for one pod.
    return [weighed.reason if _is_without_place(each, weighed.reason) else each for each in reasons]


def _is_without_place(reason: Reason, before: Reason) -> bool:
    is_one = isinstance(reason.facts, PodWithoutPlace) and isinstance(before.facts, PodWithoutPlace)
    return is_one and pod_of(reason) == pod_of(before)


def _held(scene: PlanningResult, weighed: DrainEligibility) -> list[Reason]:
    """Pods of a node being drained that cannot be evicted now, in plan order."""
    pods = {(pod.metadata.namespace, pod.name) for pod in scene.fleet.pods_on(weighed.node)}
    return [
        each.reason
        for each in scene.plan.decisions
        if each.planner == DRAIN and each.subject.kind == "Pod" and isinstance(each.act, Hold)
        if (each.subject.namespace, each.subject.name) in pods
    ]


def _keeping_rows(scene: PlanningResult, weighed: DrainEligibility) -> Iterator[Row]:
    reasons = _blocking_reasons(scene, weighed)
    if not isinstance(weighed.reason.facts, BeingDrained):
        reasons = sorted(reasons, key=_order)
    yield from _first_rows("kept by", list(map(sentence, reasons)))


def _order(reason: Reason) -> tuple[str, str]:
    """Sort key: the pod that blocks the drain."""
    pod = pod_of(reason)
    return pod.title if pod is not None else "", sentence(reason)


def changes_of(inputs: Inputs, weighed: DrainEligibility) -> str:
    """One sentence with the required changes; empty if no small change suffices."""
    after, changes = flipped(inputs, weighed)
    return " and ".join(each.words for each in changes) if after is not None else ""
