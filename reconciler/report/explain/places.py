"""On which nodes a pod would fit, and what keeps it from the others, in words."""

from collections import Counter
from collections.abc import Iterator

from reconciler.model.cluster.pod import Pod
from reconciler.plan.explain.places import refusals_by_node
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.obstacle_words import obstacle_words
from reconciler.report.explain.about import Row, unread
from reconciler.report.wording import counted

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
