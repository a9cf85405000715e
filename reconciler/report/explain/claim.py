"""Explanation of a GpuClaim: what it requests, the GPUs of its pods, why other pods wait, and the change that helps.
Also the rows about the claim in the explanation of a pod."""

from collections.abc import Iterator, Mapping

from reconciler.fleet.amounts import claim_of
from reconciler.fleet.gpu_claims import claimed_devices
from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.decision import Decision, Ref
from reconciler.plan.draft import Draft
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.gpu.claim_report import ClaimPod, ClaimUse
from reconciler.plan.gpu.claim_uses import NEEDED, use_of_claim
from reconciler.report.claim_text import (
    allocation_words,
    best_effort_words,
    change_words,
    pod_decisions,
    wait_sentence,
    wait_words,
)
from reconciler.report.explain.about import (
    ExplainedObject,
    Explanation,
    Row,
    UnknownSubject,
    decisions_about,
    unread,
)
from reconciler.report.wording import counted

_NEEDED = ("gpuclaims.gpu.scheduling", *NEEDED)
_POLICIES = {
    "any": "anywhere on one node",
    "contiguous": "in one island if possible",
    "requireContiguous": "in one island",
}


def about_claim(scene: PlanningResult, namespace: str, name: str) -> Explanation:
    """All known facts about the claim."""
    claims = gpu_claims(scene.inputs.observed.policies)
    claim = next((each for each in claims if (each.metadata.namespace, each.name) == (namespace, name)), None)
    if claim is None:
        missing = f"there is no GpuClaim {name} in namespace {namespace}"
        raise UnknownSubject(unread(scene, _NEEDED[0]) or missing)
    use = use_of(scene, namespace, name)
    title, headline = f"claim/{namespace}/{name}", request_words(claim)
    if use is None:
        why = unread(scene, *_NEEDED)
        return Explanation(title, headline, f"The pods of the claim are unknown ({why}).")
    pods = [ExplainedObject("Pod", each.pod.name, each.pod.namespace) for each in use.pods if each.wait is not None]
    decisions = decisions_about(scene, *pods) if pods else ()
    return Explanation(title, headline, _outcome(use), tuple(_rows(use, pod_decisions(scene.plan))), decisions)


def use_of(scene: PlanningResult, namespace: str, name: str) -> ClaimUse | None:
    """The pods of the claim, with the fleet of the plan; None while pods, nodes or Leases are unread."""
    return use_of_claim(scene.inputs, Draft(scene.fleet, scene.inputs.desired), namespace, name)


def request_words(claim: Unstructured) -> str:
    """Such as 2 GPUs for each pod, in one island if possible, model a100."""
    devices = claimed_devices(claim.spec)
    parts = ["a request that can't be read"]
    if devices is not None:
        parts = [f"{counted(devices.count, 'GPU')} for each pod", _POLICIES[devices.policy]]
        parts += [f"model {devices.model}"] if devices.model else []
        parts += [f"at least {devices.memory} each"] if devices.memory is not None else []
    parts += [f"of GpuPool/{claim.spec['poolName']}"] if claim.spec.get("poolName") else []
    parts += [f"gang {claim.spec['gangRef']}"] if claim.spec.get("gangRef") else []
    return ", ".join([*parts, *(["suspended"] if claim.spec.get("suspend") else [])])


def _outcome(use: ClaimUse) -> str:
    if not use.all_pods:
        return "No pod names the claim."
    numbers = {"with a node": use.bound, "waiting": use.waiting, "ended": use.ended}
    parts = [f"{number} {word}" for word, number in numbers.items() if number]
    return f"{counted(use.all_pods, 'pod')}: {', '.join(parts)}."


def _rows(use: ClaimUse, decisions: Mapping[Ref, Decision]) -> Iterator[Row]:
    if text := best_effort_words(use):
        yield "note", text
    for each in sorted(use.pods, key=lambda pod: pod.phase == "Waiting"):
        match each.phase:
            case "Bound":
                held = allocation_words(each.allocation) if each.allocation is not None else "without a Lease of a GPU"
                yield "bound", f"{each.pod.name}: {held}"
            case "Waiting":
                yield "waiting", f"{each.pod.name}: {wait_sentence(each, decisions)}"
            case "Ended":
                yield "ended", each.pod.name
    if (more := use.all_pods - len(use.pods)) > 0:
        yield "more", f"{counted(more, 'pod')} that the report does not list"
    if use.wait is not None:
        yield "GPUs", wait_words(use.wait)
    if use.change is not None:
        yield "change", change_words(use.change)


# --- Rows in the explanation of a pod.


def rows_of_pod(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    """The claim of the pod, and its GPUs or why it waits for them; empty without a claim."""
    if not pod.metadata.annotations.claim:
        return
    namespace, name = claim_of(pod)
    claims = gpu_claims(scene.inputs.observed.policies)
    claim = next((each for each in claims if (each.metadata.namespace, each.name) == (namespace, name)), None)
    yield "claim", f"claim/{namespace}/{name}: {request_words(claim) if claim is not None else 'does not exist'}"
    use = use_of(scene, namespace, name)
    found = _listed(use, pod) if use is not None else None
    if use is None or found is None:
        return
    if found.allocation is not None:
        yield "GPUs", allocation_words(found.allocation)
    if found.wait is not None:
        yield "GPUs", wait_words(found.wait)
        if use.change is not None:
            yield "change", change_words(use.change)


def _listed(use: ClaimUse, pod: Pod) -> ClaimPod | None:
    return next((each for each in use.pods if each.pod.uid == pod.metadata.uid), None)
