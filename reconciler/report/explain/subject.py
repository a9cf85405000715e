"""Parses the subject of `explain`, and selects its explanation."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import msgspec

from reconciler.model.bundle import short_revision
from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.desired import Declared
from reconciler.model.instant import clock, format_moment
from reconciler.model.plan.evaluation import DrainReport
from reconciler.model.problem import LastChange
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.impact import with_impact
from reconciler.report.decision_text import DecisionText
from reconciler.report.document import Block, CheckedCount, Fact, FactList, ReportDocument, TextLine, line
from reconciler.report.explain.about import (
    ExplainedObject,
    Explanation,
    Row,
    UnknownSubject,
    decision_sentence,
    decisions_about,
    placed,
    unread,
)
from reconciler.report.explain.claim import about_claim
from reconciler.report.explain.node import about_node
from reconciler.report.explain.pod import about_pod
from reconciler.report.explain.pool import about_pool, about_provisioner
from reconciler.report.header import ReportHeader
from reconciler.report.plans.plan_json import decision_json
from reconciler.report.wording import counted, grouped

# Kinds with their own explanations; a plan may contain other kinds, which templates render.
OTHERS = frozenset({"drainpolicy", "changeguard", *(each.kind.lower() for each in RESOURCE_KINDS)})
SUBJECTS = (
    "node/NAME",
    "pod/NAMESPACE/NAME",
    "pool/NAME",
    "claim/NAMESPACE/NAME",
    "claim/NAME",
    "provisioner/NAME",
)
_UNDECIDED = "There is no decision about this object."
# Aliases, as in kubectl and our kinds.
_WORDS = {
    "nodes": "node",
    "pods": "pod",
    "gpupool": "pool",
    "nodepool": "pool",
    "nodeclaim": "claim",
    "nodeprovisioner": "provisioner",
    "gpuclaims": "gpuclaim",
}
_NAMESPACED = frozenset({"pod", "gpuclaim"})


def parse_subject(text: str) -> ExplainedObject:
    """Parses node/n1 or pod/team-a/train-0. A claim with a namespace is a GpuClaim, one without is a NodeClaim. Raises
    UnknownSubject."""
    kind, *rest = text.split("/")
    kind = _WORDS.get(kind.lower(), kind.lower())
    if kind == "claim" and len(rest) == 2 and not text.lower().startswith("nodeclaim"):
        kind = "gpuclaim"
    if kind in _NAMESPACED and len(rest) == 2 and all(rest):
        return ExplainedObject(kind, rest[1], rest[0])
    if kind in {"node", "pod", "pool", "claim", "gpuclaim", "provisioner"} and len(rest) == 1 and rest[0]:
        return ExplainedObject(kind, rest[0], "default" if kind in _NAMESPACED else "")
    if kind in OTHERS or text[:1].isupper():
        match rest:
            case [name] if name:
                return ExplainedObject(kind, name)
            case [namespace, name] if namespace and name:
                return ExplainedObject(kind, name, namespace)
    raise UnknownSubject(
        f'"{text}" is not a subject; write one of {", ".join(SUBJECTS)}, or KIND/NAME of another object of the plan'
    )


def about(scene: PlanningResult, subject: ExplainedObject) -> Explanation:
    """The explanation, from the same decisions and consequences as the report of the plan. Raises UnknownSubject, with
    a similar name if there is one."""
    try:
        return answer(with_impact(scene).scene, subject)
    except UnknownSubject as unknown:
        close = get_close_matches(subject.name, _names(scene, subject), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise UnknownSubject(f"{unknown}{hint}") from None
    except Exception as error:  # noqa: BLE001 - what is decided is told, though what is behind it can't be
        return _decided_alone(scene, subject, error)


def _decided_alone(scene: PlanningResult, subject: ExplainedObject, error: Exception) -> Explanation:
    """The decisions about the subject, if the explanation raised."""
    whole = _whole(subject)
    decisions = decisions_about(scene, whole)
    why = f"The explanation failed because of a bug in reconciler: {type(error).__name__}: {error}."
    outcome = " ".join(decision_sentence(scene, each) for each in decisions) or _UNDECIDED
    return Explanation(subject.title, f"an object of kind {whole.kind}", f"{outcome} {why}", (), decisions)


def answer(scene: PlanningResult, subject: ExplainedObject) -> Explanation:
    """`scene` includes the consequences of scaling and drains."""
    try:
        return _by_kind(scene, subject)
    except UnknownSubject:
        # An object that this plan creates is not listed yet.
        made = _whole(subject)
        if not decisions_about(scene, made):
            raise
        return about_object(scene, made)


def _whole(subject: ExplainedObject) -> ExplainedObject:
    """The subject with the kind of its object in the cluster."""
    kind = {"claim": "NodeClaim", "pool": "NodePool", "gpuclaim": "GpuClaim"}.get(subject.kind, subject.kind)
    return msgspec.structs.replace(subject, kind=kind)


def _by_kind(scene: PlanningResult, subject: ExplainedObject) -> Explanation:
    match subject.kind:
        case "node":
            return about_node(scene, subject.name)
        case "pod":
            return about_pod(scene, subject.namespace, subject.name)
        case "provisioner":
            return about_provisioner(scene, subject.name)
        case "gpuclaim":
            return about_claim(scene, subject.namespace, subject.name)
        case "claim":
            return about_node(scene, _node_of(scene, subject.name))
        case "pool":
            return about_pool(scene, subject.name)
        case _:
            return about_object(scene, subject)


def _node_of(scene: PlanningResult, claim: str) -> str:
    node_claim = next((each for each in scene.inputs.observed.node_claims if each.name == claim), None)
    if node_claim is None:
        missing = f"there is no NodeClaim {claim}; for a GpuClaim, write claim/NAMESPACE/NAME"
        raise UnknownSubject(unread(scene, "nodeclaims.karpenter.sh") or missing)
    if not node_claim.status.node_name:
        raise UnknownSubject(f"NodeClaim {claim} has no node yet")
    return node_claim.status.node_name


def _names(scene: PlanningResult, subject: ExplainedObject) -> list[str]:
    observed, desired = scene.inputs.observed, scene.inputs.desired
    names = {
        "node": [each.name for each in observed.nodes],
        "pod": [each.name for each in observed.pods if each.metadata.namespace == subject.namespace],
        "provisioner": [each.name for each in desired.provisioners],
        "claim": [each.name for each in observed.node_claims],
        "gpuclaim": [
            each.name for each in gpu_claims(observed.policies) if each.metadata.namespace == subject.namespace
        ],
    }
    pools = [each.name for each in desired.pools] + [each.name for each in observed.node_pools]
    return sorted(set(names.get(subject.kind, pools)))


# --- Explanation of objects of other kinds.


def about_object(scene: PlanningResult, subject: ExplainedObject) -> Explanation:
    """Decisions of the plan about the object; for a policy, also its origin."""
    decisions = decisions_about(scene, subject)
    policy = _policy(scene, subject)
    if not decisions and policy is None:
        raise UnknownSubject(f"no policy and no decision of this plan is about {subject.title}")
    title = decisions[0].subject.title if decisions or policy is None else f"{policy.kind}/{policy.name}"
    rows = tuple(_rows(scene, subject))
    drains = " ".join(f"It drains {text}." for label, text in rows if label == "drains")
    outcome = " ".join(decision_sentence(scene, each) for each in decisions) or drains or _UNDECIDED
    headline = placed(policy.origin()) if policy is not None else f"an object of kind {subject.kind}"
    return Explanation(title, headline, outcome, rows, decisions)


def _policy(scene: PlanningResult, subject: ExplainedObject) -> Declared[object] | None:
    """The policy of that kind, in any case, and name."""
    desired = scene.inputs.desired
    for each in (*desired.drains, *desired.guards, *desired.provisioners, *desired.pools):
        if each.kind.lower() == subject.kind.lower() and each.name == subject.name:
            return each
    return None


def _rows(scene: PlanningResult, subject: ExplainedObject) -> Iterator[Row]:
    drain = next((each for each in scene.inputs.desired.drains if each.name == subject.name), None)
    if drain is None or subject.kind.lower() != "drainpolicy":
        return
    action = "suspended: drains no nodes of" if drain.spec.suspend else "drains nodes of"
    yield "policy", f"{action} {', '.join(drain.spec.pool_names)}, {placed(drain.origin())}"
    weighed_by = (each for each in scene.plan.report(DrainReport).weighed if each.policy == drain.name)
    pools = grouped(weighed_by, lambda each: each.pool)
    for pool, weighed in sorted(pools.items()):
        candidates = sum(each.is_candidate for each in weighed)
        yield "candidates", f"{candidates} of {counted(len(weighed), 'node')} of {pool}"
    for consequence in scene.plan.consequences:
        if consequence.fate == "drained" and consequence.pool in pools:
            first = consequence.first_at
            when = f", from {clock(first, scene.inputs.now)} on" if first is not None else ""
            nodes, pods = counted(len(consequence.nodes), "node"), counted(consequence.pods, "pod")
            yield "drains", f"{nodes} of {consequence.pool}, with {pods}{when}"


# --- An explanation as a document.

FORMAT_VERSION = 2


class Explained(msgspec.Struct, frozen=True):
    """An explanation. Consecutive rows with the same label belong together."""

    setting: ReportHeader
    subject: str  # such as node/ip-10-3-41-7
    headline: str
    outcome: str = ""  # planned changes
    rows: tuple[tuple[str, str], ...] = ()
    decision_texts: tuple[DecisionText, ...] = ()
    last_changes: tuple[LastChange, ...] = ()  # of the policy lines that cause the decisions


def explained_document(explained: Explained) -> ReportDocument:
    """The document: subject, outcome, and details."""
    return ReportDocument(
        command="explain",
        title=explained.subject,
        tool_version=explained.setting.tool_version,
        blocks=tuple(_blocks(explained)),
        payload=_payload(explained),
        otherwise=explained.headline,
        judged=CheckedCount(1, "subject", "problem"),
    )


def _blocks(explained: Explained) -> Iterator[Block]:
    yield line(f"{explained.subject}: {explained.headline}", "strong")
    codes = tuple(dict.fromkeys(each.decision.reason.code for each in explained.decision_texts))
    if explained.outcome:
        yield TextLine((explained.outcome, *codes))
    if facts := _facts(explained):
        yield FactList(facts)


def _facts(explained: Explained) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for label, text in (*explained.rows, *_of_decisions(explained)):
        if facts and facts[-1].label == label:
            facts[-1] = Fact(label, (*facts[-1].lines, text))
        else:
            facts.append(Fact(label, (text,)))
    return tuple(facts)


def _of_decisions(explained: Explained) -> Iterator[tuple[str, str]]:
    """Policy lines that cause the decisions, and when the decisions are re-evaluated."""
    origins = (each.decision.reason.origin for each in explained.decision_texts if each.place)
    places = list(dict.fromkeys(map(placed, origins)))
    yield from (("declared in", place) for place in places)
    yield from (("last changed", _changed(change, len(places) > 1)) for change in explained.last_changes)
    times = sorted({each.until for each in explained.decision_texts if each.until is not None})
    if times:
        others = f", and at {len(times) - 1} later times" if len(times) > 1 else ""
        yield "re-evaluated", f"{format_moment(times[0], explained.setting.now)}{others}"
    yield from (
        ("remedy", remedy) for remedy in dict.fromkeys(each.remedy for each in explained.decision_texts) if remedy
    )


def _changed(change: LastChange, is_one_of_many: bool) -> str:
    """Such as 4c1f9e2 by A. Name on 2026-11-02: commit subject."""
    line = f"{change.origin.place}: " if is_one_of_many else ""
    if change.unknown_before:
        return f"{line}unknown before {short_revision(change.unknown_before)}"
    by = f" by {change.author}" if change.author else ""
    on = f" on {change.date}" if change.date else ""
    return f"{line}{short_revision(change.commit)}{by}{on}" + (f": {change.subject}" if change.subject else "")


def _payload(explained: Explained) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "subject": explained.subject,
        "headline": explained.headline,
        "outcome": explained.outcome,
        "rows": [{"label": label, "text": text} for label, text in explained.rows],
        "last_changes": [msgspec.to_builtins(each) for each in explained.last_changes],
        "decisions": [msgspec.to_builtins(decision_json(each)) for each in explained.decision_texts],
    }
