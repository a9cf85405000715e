"""Explanation of a pod: its placement, and whether the plan moves it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.fleet.filters.claims import GpuClaims
from reconciler.fleet.questions import fits
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, instant, span, timestamp
from reconciler.model.plan.consequence import Consequence
from reconciler.plan.capacity.demand import GpuClaimIndex, is_coming, is_gated
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.requests import Requested, Requests, SmartPodIdentity, machine_phase
from reconciler.plan.capacity.words import choice_words, obstacle_words, obstacles_words
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.karpenter.budgets import nanoseconds
from reconciler.plan.nodes.eviction import FOREVER, PodBudgets, stays_until
from reconciler.plan.nodes.ownership import drain_policies
from reconciler.plan.smart_pods.advance import SmartPodPhase, read
from reconciler.plan.smart_pods.lift_gates import REFUSED
from reconciler.report.explain.about import (
    ExplainedObject,
    Explanation,
    Row,
    UnknownSubject,
    decision_sentence,
    decisions_about,
    fate_of,
    unread,
    would_be,
)
from reconciler.report.explain.claim import rows_of_pod
from reconciler.report.explain.node import about_node
from reconciler.report.wording import counted


def about_pod(scene: PlanningResult, namespace: str, name: str) -> Explanation:
    """All known facts about the pod."""
    pods = [pod for pod in scene.inputs.observed.pods if pod.name == name and pod.metadata.namespace == namespace]
    if not pods:
        elsewhere = "; for another namespace, write pod/NAMESPACE/NAME" if namespace == "default" else ""
        raise UnknownSubject(unread(scene, "pods") or f"there is no pod {name} in namespace {namespace}{elsewhere}")
    pod = pods[0]
    decisions = decisions_about(scene, ExplainedObject("Pod", name, namespace))
    fates = list(_fates(scene, pod))
    sentences = [decision_sentence(scene, each) for each in decisions]
    sentences += [would_be(scene, each, f"The node of the pod {fate_of(scene, each)}.") for each in fates]
    outcome = " ".join(sentences) or _undecided(scene, pod)
    rows = (*_rows(scene, pod), *_homeless(pod, fates))
    return Explanation(f"pod/{namespace}/{name}", _headline(scene, pod), outcome, rows, decisions)


def _undecided(scene: PlanningResult, pod: Pod) -> str:
    """Outcome of a pod without decisions."""
    if pod.node or not pod.counts or pod.metadata.leaving:
        return "No planned change moves the pod."
    if gates := ", ".join(each.name for each in pod.spec.scheduling_gates if each.name != names.CAPACITY_GATE):
        return f"The pod waits for removal of its scheduling gates ({gates}); until then nothing is bought for it."
    if why := unread(scene, "pods", "nodes", "nodeclaims.karpenter.sh"):
        return f"What the pod waits for is unknown ({why})."
    if is_coming(pod, SmartPodIdentity(scene.inputs.desired)):
        return "The pod waits for the scheduler to report it as unschedulable; until then nothing is bought for it."
    return "The pod waits for capacity on existing nodes: no pool of these policies serves it."


def _fates(scene: PlanningResult, pod: Pod) -> Iterator[Consequence]:
    """Consequences for its node that move the pod."""
    for each in scene.plan.consequences if pod.node and pod.counts else ():
        own = each.only((pod.node,))
        if own is not None:
            yield own


def _headline(scene: PlanningResult, pod: Pod) -> str:
    where = f"on {pod.node}" if pod.node else "on no node"
    return ", ".join((pod.status.phase or "no kubelet status", where, counted(scene.fleet.gpu_requests.of(pod), "GPU")))


def _rows(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    if owner := pod.metadata.controller:
        yield "owner", f"{owner.kind}/{owner.name}"
    yield from rows_of_pod(scene, pod)
    if pod.stays_with_its_node:
        yield "moves", "never: the pod belongs to its node"
    if (until := stays_until(pod)) > scene.inputs.now:
        end = "" if until == FOREVER else f", until {timestamp(until)}"
        yield "protected", f"by annotation {names.DO_NOT_DISRUPT}{end}"
    for budget in PodBudgets(scene.inputs.observed.budgets).of(pod):
        yield "budget", f"{budget.title}: disruptionsAllowed is {budget.status.disruptions_allowed}"
    if why := unread(scene, "poddisruptionbudgets.policy"):
        yield "budget", f"unknown: {why}"
    yield from _checkpoint(scene, pod)
    yield from _waits(pod)
    yield from waiting_rows(scene, pod)
    yield from smart_rows(scene, pod)
    if pod.counts:
        yield from where_it_fits(scene, pod)
    if pod.node and scene.fleet.node(pod.node):
        yield "node", about_node(scene, pod.node).headline
    elif pod.node and (why := unread(scene, "nodes")):
        yield "node", f"unknown: {why}"


def _checkpoint(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    """Of an invalid checkpoint time: the time that a drain would give the pod."""
    written = pod.metadata.annotations.checkpoint
    if not written or not pod.counts or pod.stays_with_its_node:
        return
    try:
        nanoseconds(written)
    except ValueError:
        node = scene.fleet.node(pod.node)
        drain = drain_policies(scene.inputs.desired).get(node.pool) if node is not None else None
        text = f"the annotation {names.CHECKPOINT}: {written} is not a duration such as 120s"
        if drain is not None:
            seconds = drain.spec.max_graceful_termination_seconds
            text += f": a drain gives the pod {seconds} s, the maximum of DrainPolicy/{drain.name}"
        yield "checkpoint", text


def _homeless(pod: Pod, fates: Sequence[Consequence]) -> Iterator[Row]:
    for fate in fates:
        for homeless in fate.homeless:
            if homeless.owner == pod.made_by:
                yield "after eviction", f"fits on no node: {obstacles_words(homeless.why)}"


def _waits(pod: Pod) -> Iterator[Row]:
    unscheduled = (each for each in pod.status.conditions if each.type == "PodScheduled" and each.status != "True")
    if waiting := next(unscheduled, None):
        yield "waits", waiting.reason
    yield from (("gate", gate.name) for gate in pod.spec.scheduling_gates)


# --- Gated pods: the reason for waiting, and their smart pods. Smart pods: what they are for.

_MOST_LISTED = 5


def waiting_rows(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    """Of an unscheduled pod: why it waits, and each smart pod created for it."""
    if pod.node:
        return
    others = [each.name for each in pod.spec.scheduling_gates if each.name != names.CAPACITY_GATE]
    if is_gated(pod):
        yield "waits for", "a usable node with free capacity; then its gate is removed"
    elif others and len(others) < len(pod.spec.scheduling_gates):
        gates = " and ".join(others)
        yield "waits for", f"removal of {gates} by other controllers; until then nothing is bought for it"
    pool, _, refused = pod.metadata.annotations.waits_for.partition(".")
    if refused == REFUSED:
        yield "event", f"no node of pool {pool} can be launched"
    elif pool:
        yield "event", f"insufficient GPUs in pool {pool}, scaling triggered"
    for each in _all(scene):
        if pod.metadata.uid in each.request.pods:
            yield "requested", f"by Pod/{each.pod.title}: {_choice(each)}, {_stands(each)}{_for(scene, each.pod)}"


def smart_rows(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    """Rows of a smart pod; empty for any other pod."""
    each = next((each for each in _all(scene) if each.pod is pod), None)
    if each is None:
        return
    request = each.request
    yield "serves", _whom(scene, each)
    yield "requests", f"{_choice(each)} with {counted(request.count, 'GPU')}, in pool {request.pool}"
    yield "phase", f"{_stands(each)}{_for(scene, pod)}"
    if (retries := pod.metadata.annotations.retries) not in {"", "0"}:
        yield "retries", f"{retries} launch options failed before"
    pool = scene.inputs.desired.pool(request.pool)
    if pool is not None:
        yield "deadline", f"{span(pool.spec.smart_pods.active_deadline_seconds)}, unless a NodeClaim exists for the pod"


def _all(scene: PlanningResult) -> Iterator[Requested]:
    for _, there in sorted(Requests(scene.fleet, SmartPodIdentity(scene.inputs.desired)).by_pool.items()):
        yield from there


def _choice(each: Requested) -> str:
    return choice_words(LaunchOption(each.request.instance_type, each.request.capacity_type, each.request.zone))


def _stands(each: Requested) -> str:
    phase = SmartPodPhase.SCHEDULED if each.pod.node else read(each.pod.metadata.annotations.phase)
    machine = f"NodeClaim/{each.claim.name} is {machine_phase(each.claim)}" if each.claim else "no NodeClaim yet"
    return f"{phase.value}, {machine}"


def _whom(scene: PlanningResult, each: Requested) -> str:
    if not each.request.pods:
        return f"minSize of pool {each.request.pool}"
    wanted = set(each.request.pods)
    there = sorted(f"Pod/{pod.title}" for pod in scene.inputs.observed.pods if pod.metadata.uid in wanted)
    more, gone = len(there) - _MOST_LISTED, len(wanted) - len(there)
    told_of = there[:_MOST_LISTED] + ([f"{more} more"] if more > 0 else [])
    return ", ".join(told_of + ([f"{counted(gone, 'pod')} deleted since"] if gone else []))


def _for(scene: PlanningResult, pod: Pod) -> str:
    """Such as ", for 34 s"."""
    try:
        since = instant(pod.metadata.creation_timestamp)
    except ValueError:
        return ""
    return f", for {span(max(0, Instant(scene.inputs.now - since) // 1_000))}"


# --- Nodes on which a pod would fit, and why the others are rejected.

_MOST_REASONS = 5


def where_it_fits(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    """Result of the scheduler's filters now; for a running pod, the result for a pod that replaces it."""
    if why := unread(scene, "nodes", "pods"):
        yield "fits", f"unknown: {why}"
        return
    others = [node.name for node in scene.inputs.observed.nodes if node.name != pod.node]
    snapshot, claims = scene.fleet.snapshot, GpuClaimIndex(scene.inputs.observed, scene.inputs.desired.pools)
    with snapshot.fork(), snapshot.part(GpuClaims).judged(claims.requests):
        obstacles = [found for name in others if (found := fits(snapshot, pod, name))]
    first = Counter(obstacle_words(each[0]) for each in obstacles)
    number = counted(len(others), "other node" if pod.node else "node")
    yield "fits", f"on {len(others) - first.total()} of {number}"
    amounts = sorted(first.items(), key=lambda each: (-each[1], each[0]))
    for reason, nodes in amounts[:_MOST_REASONS]:
        yield "does not fit", f"{counted(nodes, 'node')}: {reason}"
    if more := sum(nodes for _, nodes in amounts[_MOST_REASONS:]):
        yield "does not fit", f"{counted(more, 'node')} for other reasons"
