"""Published status of each GpuClaim: its pods, their GPUs, and why pods wait."""

from collections.abc import Mapping
from typing import Any

import msgspec

from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.decision import Decision, Reason, Ref, Status
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.gpu.claim_report import AllocationScore, ClaimPod, ClaimReport, ClaimUse
from reconciler.plan.status.reasons import PLANNER, StatusTold
from reconciler.report.claim_text import (
    best_effort_words,
    change_words,
    pod_decisions,
    reason_of,
    wait_sentence,
)

LONGEST = 1_024  # characters of a message
_TEXTS = ("message", "change")

Body = dict[str, Any]


class ClaimStatus(msgspec.Struct, frozen=True):
    """The write of a status that differs from the published one."""

    decision: Decision
    is_rewording: bool  # only sentences differ
    pods: int  # in the list


def claim_statuses(inputs: Inputs, plan: Plan) -> tuple[ClaimStatus, ...]:
    """One write for each GpuClaim whose status changes. None where all pools are only observed."""
    if not any(each.spec.is_enforced for each in inputs.desired.pools):
        return ()
    claims = {(each.metadata.namespace, each.name): each for each in gpu_claims(inputs.observed.policies)}
    decisions = pod_decisions(plan)
    found = []
    for use in plan.report(ClaimReport).claims:
        claim = claims.get((use.claim.namespace, use.claim.name))
        if claim is None or claim.metadata.uid != use.claim.uid or claim.metadata.deletion_timestamp:
            continue
        body = status_body(use, claim, decisions, inputs.now)
        if not _is_published(body, claim.status):
            is_rewording = _is_published(_without_texts(body), _without_texts(claim.status))
            found.append(ClaimStatus(_decision(use, body), is_rewording, len(use.pods)))
    return tuple(found)


def _decision(use: ClaimUse, body: Body) -> Decision:
    message = body["conditions"][0]["message"]
    act = Status(body=msgspec.json.encode(body, order="sorted").decode())
    return Decision(PLANNER, use.claim, act, Reason(StatusTold(use.claim, message)))


def status_body(use: ClaimUse, claim: Unstructured, decisions: Mapping[Ref, Decision], now: Instant) -> Body:
    """The status as JSON."""
    generation = claim.metadata.generation
    observed = {"observedGeneration": generation} if generation else {}
    return {
        **observed,
        "conditions": [{**_ready(use, decisions, claim.status, now), **observed}],
        "problems": [],
        "pods": use.all_pods,
        "waiting": use.waiting,
        "bound": use.bound,
        "bestEffortPools": list(use.best_effort_in),
        "summary": f"{use.bound} of {use.bound + use.waiting}",
        "allocations": [_allocation(each, use, decisions) for each in use.pods],
    }


def _ready(use: ClaimUse, decisions: Mapping[Ref, Decision], live: Mapping[str, Any], now: Instant) -> Body:
    first = next((each for each in use.pods if each.wait is not None), None)
    if first is not None:
        others = f" And {use.waiting - 1} more." if use.waiting > 1 else ""
        reason, message = reason_of(first), f"{wait_sentence(first, decisions)}{others}"
    elif use.bound:
        reason, message = "Allocated", f"Pods with their GPUs: {use.bound}."
    else:
        reason, message = "Unused", "No pod needs GPUs of the claim."
    if text := best_effort_words(use):
        message = f"{message} {text[0].upper()}{text[1:]}."
    status = "False" if first is not None else "True"
    before: Mapping[str, Any] = next((each for each in live.get("conditions") or () if each.get("type") == "Ready"), {})
    at = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": "Ready",
        "status": status,
        "lastTransitionTime": at or timestamp(Instant(now - now % 1_000)),  # whole seconds, as in Kubernetes
        "reason": reason,
        "message": message[:LONGEST],
    }


def _allocation(pod: ClaimPod, use: ClaimUse, decisions: Mapping[Ref, Decision]) -> Body:
    found: Body = {"podUID": pod.pod.uid, "pod": pod.pod.name, "phase": pod.phase}
    found |= {"devices": [], "uuids": []}  # the API server adds these defaults, and the published status is compared
    if (held := pod.allocation) is not None:
        found |= {"node": held.node, "devices": list(held.devices)}
        found["uuids"] = list(held.uuids) if all(held.uuids) else []
        if held.score is not None and not held.is_by_kubelet:
            found |= _score(held.score, len(held.devices))
    if pod.wait is not None:
        found |= {"reason": reason_of(pod), "message": wait_sentence(pod, decisions)[:LONGEST]}
        if use.change is not None:
            text = change_words(use.change)
            found["change"] = f"{text[0].upper()}{text[1:]}."[:LONGEST]
    return found


def _score(score: AllocationScore, gpus: int) -> Body:
    known = {"bandwidthGBps": score.smallest_gbps} if score.is_bandwidth_known and gpus > 1 else {}
    parts = {"oneIsland": score.is_one_island}
    sums = {"sumGBps": score.sum_gbps, "bestGBps": score.best_gbps} if known else {}
    return {**known, "score": {**parts, **sums}}


# --- Comparison with the published status.


def _is_published(body: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether the live status has this content; conditions of other writers are ignored."""
    conditions = {each.get("type"): each for each in live.get("conditions") or ()}
    return all(conditions.get(each["type"]) == each for each in body["conditions"]) and all(
        _unordered(live.get(key) or value.__class__()) == _unordered(value)
        for key, value in body.items()
        if key != "conditions"
    )


def _unordered(value: Any) -> Any:
    """A list of pods by uid: server-side apply may change the order."""
    is_list_of_pods = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return {str(each.get("podUID")): each for each in value} if is_list_of_pods else value


def _without_texts(status: Mapping[str, Any]) -> Body:
    """The status without sentences."""
    found = dict(status)
    for name in ("conditions", "allocations"):
        items = found.get(name)
        found[name] = [
            {key: value for key, value in each.items() if key not in _TEXTS}
            for each in (items if isinstance(items, list) else ())
            if isinstance(each, dict)
        ]
    return found
