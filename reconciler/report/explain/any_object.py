"""Why something is done, or not, to an object that has no explanation of its own kind."""

from collections.abc import Iterator

from reconciler.model.human_time import clock
from reconciler.model.plan.drain_eligibility import DrainEligibility
from reconciler.plan.explain.decisions import ExplainedObject, decisions_about
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.report.explain.about import Explanation, Row, UnknownSubject, decision_sentence, placed
from reconciler.report.wording import counted


def about_object(scene: PlanningResult, subject: ExplainedObject) -> Explanation:
    """What the plan decides about it; of a policy, where it was written."""
    decisions = decisions_about(scene, subject)
    policy = _policy(scene, subject)
    if not decisions and not policy:
        raise UnknownSubject(f"there is no {subject.title} among the policies and the decisions of this plan")
    title = decisions[0].subject.title if decisions else policy
    rows = tuple(_rows(scene, subject))
    drains = " ".join(f"It drains {text}." for label, text in rows if label == "drains")
    outcome = (
        " ".join(decision_sentence(scene, each) for each in decisions)
        or drains
        or "Nothing is decided about it itself."
    )
    return Explanation(title, _headline(policy, subject), outcome, rows, decisions)


def _headline(policy: str, subject: ExplainedObject) -> str:
    return "a policy" if policy else f"an object of kind {subject.kind}"


def _policy(scene: PlanningResult, subject: ExplainedObject) -> str:
    """The title of the policy, as it is written."""
    desired = scene.inputs.desired
    for each in (*desired.drains, *desired.guards, *desired.provisioners, *desired.pools):
        if each.kind.lower() == subject.kind.lower() and each.name == subject.name:
            return f"{each.kind}/{each.name}"
    return ""


def _rows(scene: PlanningResult, subject: ExplainedObject) -> Iterator[Row]:
    drain = next((each for each in scene.inputs.desired.drains if each.name == subject.name), None)
    if drain is None or subject.kind.lower() != "drainpolicy":
        return
    yield "policy", f"drains nodes of {', '.join(drain.spec.pool_names)}, {placed(drain.origin())}"
    pools: dict[str, list[DrainEligibility]] = {}
    for each in scene.plan.weighed:
        if each.policy == drain.name:
            pools.setdefault(each.pool, []).append(each)
    for pool, weighed in sorted(pools.items()):
        candidates = sum(each.is_candidate for each in weighed)
        yield "candidates", f"{candidates} of {counted(len(weighed), 'node')} of {pool}"
    for consequence in scene.plan.consequences:
        if consequence.fate == "drained" and consequence.pool in pools:
            first = consequence.first_at
            when = f", from {clock(first, scene.inputs.now)} on" if first is not None else ""
            nodes, pods = counted(len(consequence.nodes), "node"), counted(consequence.pods, "pod")
            yield "drains", f"{nodes} of {consequence.pool}, with {pods}{when}"
