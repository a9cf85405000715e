"""Why a pod is where it is, and whether it will have to move."""

from collections.abc import Iterator, Sequence

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import timestamp
from reconciler.model.plan.consequence import Consequence
from reconciler.plan.capacity.identity import SmartPodIdentity
from reconciler.plan.capacity.waiting import is_coming
from reconciler.plan.explain.decisions import ExplainedObject, decisions_about
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.nodes.eviction import FOREVER, PodBudgets, stays_until
from reconciler.plan.obstacle_words import obstacles_words
from reconciler.report.explain.about import (
    Explanation,
    Row,
    UnknownSubject,
    decision_sentence,
    fate_of,
    unread,
    would_be,
)
from reconciler.report.explain.gated_pod import smart_rows, waiting_rows
from reconciler.report.explain.node import about_node
from reconciler.report.explain.places import where_it_fits


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
