"""Why a pod is where it is, and whether it will have to move."""

from collections import Counter
from collections.abc import Iterator, Sequence

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, instant, span, timestamp
from reconciler.model.plan.consequence import Consequence
from reconciler.plan.capacity.demand import is_coming, is_gated
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.requests import Requested, Requests, SmartPodIdentity, machine_phase
from reconciler.plan.capacity.words import choice_words, obstacle_words, obstacles_words
from reconciler.plan.explain.facts import ExplainedObject, decisions_about, refusals_by_node
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.nodes.eviction import FOREVER, PodBudgets, stays_until
from reconciler.plan.smart_pods.advance import SmartPodPhase, read
from reconciler.plan.smart_pods.lift_gates import REFUSED
from reconciler.report.explain.about import (
    Explanation,
    Row,
    UnknownSubject,
    decision_sentence,
    fate_of,
    unread,
    would_be,
)
from reconciler.report.explain.node import about_node
from reconciler.report.wording import counted


def about_pod(scene: PlanningResult, namespace: str, name: str) -> Explanation:
    """Everything that is known of the pod."""
    pods = [pod for pod in scene.inputs.observed.pods if pod.name == name and pod.metadata.namespace == namespace]
    if not pods:
        raise UnknownSubject(unread(scene, "pods") or f"there is no pod {name} in namespace {namespace}")
    pod = pods[0]
    decisions = decisions_about(scene, ExplainedObject("Pod", name, namespace))
    fates = list(_fates(scene, pod))
    sentences = [decision_sentence(scene, each) for each in decisions]
    sentences += [would_be(scene, each, f"Its node {fate_of(scene, each)}.") for each in fates]
    outcome = " ".join(sentences) or _undecided(scene, pod)
    rows = (*_rows(scene, pod), *_homeless(pod, fates))
    return Explanation(f"pod/{namespace}/{name}", _headline(scene, pod), outcome, rows, decisions)


def _undecided(scene: PlanningResult, pod: Pod) -> str:
    """What is said of a pod about which nothing is decided."""
    if pod.node or not pod.counts or pod.metadata.leaving:
        return "Nothing is planned that would move it."
    if gates := ", ".join(each.name for each in pod.spec.scheduling_gates if each.name != names.CAPACITY_GATE):
        return f"It waits for whoever lifts its gates ({gates}): nothing is bought for it before."
    if why := unread(scene, "pods", "nodes", "nodeclaims.karpenter.sh"):
        return f"What it waits for is not known: {why}."
    if is_coming(pod, SmartPodIdentity(scene.inputs.desired)):
        return "It waits for the scheduler, which has not said that no node has room: nothing is bought for it before."
    return "It waits for room on a node that is there: no pool of these policies is asked for it."


def _fates(scene: PlanningResult, pod: Pod) -> Iterator[Consequence]:
    """Of its node, as far as that moves it."""
    for each in scene.plan.consequences if pod.node and pod.counts else ():
        own = each.only((pod.node,))
        if own is not None:
            yield own


def _headline(scene: PlanningResult, pod: Pod) -> str:
    where = f"on {pod.node}" if pod.node else "on no node"
    return ", ".join((pod.status.phase or "not seen by a kubelet", where, f"{scene.fleet.gpu_requests.of(pod)} GPUs"))


def _rows(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    if owner := pod.metadata.controller:
        yield "made by", f"{owner.kind}/{owner.name}"
    if pod.stays_with_its_node:
        yield "moves", "never: it comes and goes with its node"
    if (until := stays_until(pod)) > scene.inputs.now:
        end = "" if until == FOREVER else f", until {timestamp(until)}"
        yield "held up by", f"its annotation {names.DO_NOT_DISRUPT}{end}"
    for budget in PodBudgets(scene.inputs.observed.budgets).of(pod):
        yield "budget", f"{budget.title} allows {budget.status.disruptions_allowed} more to be away"
    if why := unread(scene, "poddisruptionbudgets.policy"):
        yield "budget", f"not known: {why}"
    yield from _waits(pod)
    yield from waiting_rows(scene, pod)
    yield from smart_rows(scene, pod)
    if pod.counts:
        yield from where_it_fits(scene, pod)
    if pod.node and scene.fleet.node(pod.node):
        yield "its node", about_node(scene, pod.node).headline
    elif pod.node and (why := unread(scene, "nodes")):
        yield "its node", f"not known: {why}"


def _homeless(pod: Pod, fates: Sequence[Consequence]) -> Iterator[Row]:
    for fate in fates:
        for homeless in fate.homeless:
            if homeless.owner == pod.made_by:
                yield "after it", f"it would fit nowhere: {obstacles_words(homeless.why)}"


def _waits(pod: Pod) -> Iterator[Row]:
    waiting = next(
        (each for each in pod.status.conditions if each.type == "PodScheduled" and each.status != "True"), None
    )
    if waiting:
        yield "waits", waiting.reason
    for gate in pod.spec.scheduling_gates:
        yield "gate", gate.name


# --- What a pod behind our gate waits for and what was asked for it; and what a smart pod is for.

_MOST_LISTED = 5


def waiting_rows(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    """Of a pod that is not placed: why it waits, and each smart pod that was made for it."""
    if pod.node:
        return
    others = [each.name for each in pod.spec.scheduling_gates if each.name != names.CAPACITY_GATE]
    if is_gated(pod):
        yield "waits for", "a node with room for it that can be used; then its gate is lifted"
    elif others and len(others) < len(pod.spec.scheduling_gates):
        yield (
            "waits for",
            f"{' and '.join(others)} first: nothing is bought for it before those who put them on lift them",
        )
    pool, _, refused = pod.metadata.annotations.waits_for.partition(".")
    if refused == REFUSED:
        yield "was told", f"no machine of pool {pool} can be had"
    elif pool:
        yield "was told", f"insufficient GPUs in pool {pool}, scaling triggered"
    for each in _all(scene):
        if pod.metadata.uid in each.request.pods:
            yield "asked for", f"by Pod/{each.pod.title}: {_choice(each)}, {_stands(each)}{_for(scene, each.pod)}"


def smart_rows(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    """Of a smart pod; nothing of any other."""
    each = next((each for each in _all(scene) if each.pod is pod), None)
    if each is None:
        return
    request = each.request
    yield "is for", _whom(scene, each)
    yield "asks for", f"{_choice(each)} with {counted(request.count, 'GPU')}, in pool {request.pool}"
    yield "phase", f"{_stands(each)}{_for(scene, pod)}"
    if (retries := pod.metadata.annotations.retries) not in {"", "0"}:
        yield "before it", f"{retries} ways to buy had failed"
    pool = scene.inputs.desired.pool(request.pool)
    if pool is not None:
        yield "at most", f"{span(pool.spec.smart_pods.active_deadline_seconds)}, while no machine is on its way for it"


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
    return ", ".join(told_of + ([f"{counted(gone, 'pod')} that are gone"] if gone else []))


def _for(scene: PlanningResult, pod: Pod) -> str:
    """, for 34 s."""
    try:
        since = instant(pod.metadata.creation_timestamp)
    except ValueError:
        return ""
    return f", for {span(max(0, Instant(scene.inputs.now - since) // 1_000))}"


# --- On which nodes a pod would fit, and what keeps it from the others, in words.

_MOST_REASONS = 5


def where_it_fits(scene: PlanningResult, pod: Pod) -> Iterator[Row]:
    """What the scheduler would say of it now; of a pod that runs, what it would say of one that takes its place."""
    if why := unread(scene, "nodes", "pods"):
        yield "fits", f"not known: {why}"
        return
    others = sum(node.name != pod.node for node in scene.inputs.observed.nodes)
    first: Counter[str] = Counter()
    for obstacle, nodes in refusals_by_node(scene, pod).items():
        first[obstacle_words(obstacle)] += nodes
    yield "fits", f"on {others - first.total()} of {counted(others, 'other node' if pod.node else 'node')}"
    amounts = sorted(first.items(), key=lambda each: (-each[1], each[0]))
    for reason, nodes in amounts[:_MOST_REASONS]:
        yield "not on", f"{counted(nodes, 'node')}: {reason}"
    if more := sum(nodes for _, nodes in amounts[_MOST_REASONS:]):
        yield "not on", f"{counted(more, 'node')} for other reasons"
