"""Which pods keep a node from being emptied, each with its reason: a row a pod, and no more than can be read."""

from collections.abc import Iterator

from reconciler.model.planned.action import Hold
from reconciler.model.planned.reason import Reason
from reconciler.model.planned.weighed import Weighed
from reconciler.plan.draft import Draft
from reconciler.plan.drain.failing.keepers import keepers
from reconciler.plan.drain.reasons import BEING_DRAINED, NO_PLACE, PLANNER
from reconciler.plan.explain import sentence
from reconciler.plan.kept.scene import Scene

MOST_TOLD = 10


def keeping_rows(scene: Scene, weighed: Weighed) -> Iterator[tuple[str, str]]:
    """Nothing where it is what was told of the node already."""
    found = _held(scene, weighed) if weighed.reason.code == BEING_DRAINED.code else _keep(scene, weighed)
    if found == [weighed.reason]:
        return
    for each in found[:MOST_TOLD]:
        yield "kept by", sentence(each)
    if more := found[MOST_TOLD:]:
        yield "kept by", f"and {len(more)} more"


def _keep(scene: Scene, weighed: Weighed) -> list[Reason]:
    if weighed.is_candidate:
        return []
    found = keepers(scene.inputs, Draft(scene.fleet, scene.inputs.desired), weighed.node)
    # Nodes that had no room are counted in a plan once for pods that are alike; of one pod let there be one count.
    told = [weighed.reason if _is_without_place(each, weighed.reason) else each for each in found]
    return sorted(told, key=lambda each: (str(each.fact("pod") or ""), sentence(each)))


def _is_without_place(reason: Reason, before: Reason) -> bool:
    return reason.code == before.code == NO_PLACE.code and reason.fact("pod") == before.fact("pod")


def _held(scene: Scene, weighed: Weighed) -> list[Reason]:
    """Of a node that is being emptied: its pods that can't be asked to leave now."""
    pods = {(pod.metadata.namespace, pod.name) for pod in scene.fleet.pods_on(weighed.node)}
    return [
        each.reason
        for each in scene.plan.decisions
        if each.planner == PLANNER and each.subject.kind == "Pod" and isinstance(each.act, Hold)
        if (each.subject.namespace, each.subject.name) in pods
    ]
