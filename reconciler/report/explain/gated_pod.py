"""What a pod behind our gate waits for and what was asked for it; and what a smart pod is for."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.human_time import span
from reconciler.model.instant import Instant, instant
from reconciler.plan.capacity.identity import SmartPodIdentity
from reconciler.plan.capacity.machines import machine_phase
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.requests import Requested, Requests
from reconciler.plan.capacity.waiting import is_gated
from reconciler.plan.capacity.words import choice_words
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.smart_pods.lift_gates import REFUSED
from reconciler.plan.smart_pods.phases import SmartPodPhase, read
from reconciler.report.explain.about import Row
from reconciler.report.wording import counted

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
