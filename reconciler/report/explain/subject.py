"""What a person asked about, and who answers."""

from difflib import get_close_matches

from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.plan.explain.decisions import ExplainedObject, decisions_about
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.impact.impact import with_impact
from reconciler.report.explain.about import Explanation, UnknownSubject, decision_sentence, unread
from reconciler.report.explain.any_object import about_object
from reconciler.report.explain.node import about_node
from reconciler.report.explain.pod import about_pod
from reconciler.report.explain.pool import about_pool
from reconciler.report.explain.provisioner import about_provisioner

# Kinds that are asked about by their own names; a plan may name others, which templates yield.
OTHERS = frozenset({"drainpolicy", "changeguard", *(each.kind.lower() for each in RESOURCE_KINDS)})
SUBJECTS = ("node/NAME", "pod/NAMESPACE/NAME", "pool/NAME", "claim/NAME", "provisioner/NAME")
# Other words for the same, as kubectl and our kinds have them.
_WORDS = {
    "nodes": "node",
    "pods": "pod",
    "gpupool": "pool",
    "nodepool": "pool",
    "nodeclaim": "claim",
    "nodeprovisioner": "provisioner",
}


def parse_subject(text: str) -> ExplainedObject:
    """Reads node/n1, pod/team-a/train-0. Raises UnknownSubject."""
    kind, *rest = text.split("/")
    kind = _WORDS.get(kind.lower(), kind.lower())
    if kind == "pod" and len(rest) == 2:
        return ExplainedObject(kind, rest[1], rest[0])
    if kind in {"node", "pod", "pool", "claim", "provisioner"} and len(rest) == 1 and rest[0]:
        return ExplainedObject(kind, rest[0], "default" if kind == "pod" else "")
    if kind in OTHERS or text[:1].isupper():
        match rest:
            case [name] if name:
                return ExplainedObject(kind, name)
            case [namespace, name] if namespace and name:
                return ExplainedObject(kind, name, namespace)
    raise UnknownSubject(f'"{text}" names no subject; write one of {", ".join(SUBJECTS)}')


def about(scene: PlanningResult, subject: ExplainedObject) -> Explanation:
    """The answer, from the same decisions and consequences as the report of the plan has. Raises UnknownSubject, with a
    name that is close where there is one."""
    try:
        return answer(with_impact(scene).scene, subject)
    except UnknownSubject as unknown:
        close = get_close_matches(subject.name, _names(scene, subject), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise UnknownSubject(f"{unknown}{hint}") from None
    except Exception as error:  # noqa: BLE001 - what is decided is told, though what is behind it can't be
        return _decided_alone(scene, subject, error)


def _decided_alone(scene: PlanningResult, subject: ExplainedObject, error: Exception) -> Explanation:
    """What the plan decides, where explaining it raised."""
    kind = {"claim": "NodeClaim", "pool": "NodePool"}.get(subject.kind, subject.kind)
    decisions = decisions_about(scene, ExplainedObject(kind, subject.name, subject.namespace))
    why = f"Why could not be told, by a fault of reconciler: {type(error).__name__}: {error}."
    outcome = " ".join(decision_sentence(scene, each) for each in decisions) or "Nothing is decided about it itself."
    return Explanation(subject.title, f"an object of kind {kind}", f"{outcome} {why}", (), decisions)


def answer(scene: PlanningResult, subject: ExplainedObject) -> Explanation:
    """`scene`: with what scaling and drains take away among its consequences."""
    try:
        return _by_kind(scene, subject)
    except UnknownSubject:
        # An object that this plan makes is in no list yet.
        kind = {"claim": "NodeClaim", "pool": "NodePool"}.get(subject.kind, subject.kind)
        made = ExplainedObject(kind, subject.name, subject.namespace)
        if not decisions_about(scene, made):
            raise
        return about_object(scene, made)


def _by_kind(scene: PlanningResult, subject: ExplainedObject) -> Explanation:
    match subject.kind:
        case "node":
            return about_node(scene, subject.name)
        case "pod":
            return about_pod(scene, subject.namespace, subject.name)
        case "provisioner":
            return about_provisioner(scene, subject.name)
        case "claim":
            return about_node(scene, _node_of(scene, subject.name))
        case "pool":
            return about_pool(scene, subject.name)
        case _:
            return about_object(scene, subject)


def _node_of(scene: PlanningResult, claim: str) -> str:
    node_claim = next((each for each in scene.inputs.observed.node_claims if each.name == claim), None)
    if node_claim is None:
        raise UnknownSubject(unread(scene, "nodeclaims.karpenter.sh") or f"there is no NodeClaim {claim}")
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
    }
    pools = [each.name for each in desired.pools] + [each.name for each in observed.node_pools]
    return sorted(set(names.get(subject.kind, pools)))
