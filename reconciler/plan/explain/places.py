"""On which nodes a pod would fit, and what keeps it from the others."""

from collections import Counter

from reconciler.fleet.questions import fits
from reconciler.model.cluster.pod import Pod
from reconciler.model.obstacle import Obstacle
from reconciler.plan.files.planning_result import PlanningResult


def refusals_by_node(scene: PlanningResult, pod: Pod) -> Counter[Obstacle]:
    """How many of the other nodes have which first reason not to take the pod."""
    others = (node.name for node in scene.inputs.observed.nodes if node.name != pod.node)
    return Counter(reasons[0] for name in others if (reasons := fits(scene.fleet.snapshot, pod, name)))
