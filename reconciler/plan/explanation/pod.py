"""Why a pod is where it is, and whether it will have to move."""

from collections.abc import Iterator

from reconciler.model.cluster.pod import Pod
from reconciler.plan.explanation.about import About, UnknownSubject, fate_of
from reconciler.plan.explanation.node import about_node
from reconciler.plan.scene import Scene


def about_pod(scene: Scene, namespace: str, name: str) -> About:
    """Everything that is known of the pod."""
    found = [pod for pod in scene.inputs.observed.pods if pod.name == name and pod.metadata.namespace == namespace]
    if not found:
        raise UnknownSubject(f"there is no pod {name} in namespace {namespace}")
    pod = found[0]
    fates = [each for each in scene.plan.consequences if pod.node in each.nodes] if pod.node and pod.counts else []
    outcome = " ".join(f"Its node {fate_of(each)}." for each in fates) or "Nothing is planned that would move it."
    return About(f"pod/{namespace}/{name}", _headline(pod), outcome, tuple(_rows(scene, pod)))


def _headline(pod: Pod) -> str:
    where = f"on {pod.node}" if pod.node else "on no node"
    return ", ".join((pod.status.phase or "not seen by a kubelet", where, f"{pod.gpus} GPUs"))


def _rows(scene: Scene, pod: Pod) -> Iterator[tuple[str, str]]:
    if owner := pod.metadata.controller:
        yield "made by", f"{owner.kind}/{owner.name}"
    if pod.stays_with_its_node:
        yield "moves", "never: it comes and goes with its node"
    if pod.metadata.annotations.do_not_disrupt == "true":
        yield "held up by", "its annotation karpenter.sh/do-not-disrupt"
    for budget in scene.inputs.observed.budgets:
        same = budget.metadata.namespace == pod.metadata.namespace
        selector = budget.spec.selector
        if same and selector is not None and selector.matches(pod.metadata.labels):
            yield "budget", f"{budget.title} allows {budget.status.disruptions_allowed} more to be away"
    waiting = next(
        (each for each in pod.status.conditions if each.type == "PodScheduled" and each.status != "True"), None
    )
    if waiting:
        yield "waits", waiting.reason
    for gate in pod.spec.scheduling_gates:
        yield "gate", gate.name
    if pod.node and scene.fleet.node(pod.node):
        yield "its node", about_node(scene, pod.node).headline
