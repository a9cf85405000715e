"""On which nodes a pod would fit, and what keeps it from the others."""

from collections import Counter
from collections.abc import Iterator

from reconciler.fleet.questions import fits
from reconciler.model.cluster.pod import Pod
from reconciler.plan.explain.about import counted, unread
from reconciler.plan.files.planning_result import PlanningResult

_MOST_REASONS = 5


def where_it_fits(scene: PlanningResult, pod: Pod) -> Iterator[tuple[str, str]]:
    """What the scheduler would say of it now; of a pod that runs, what it would say of one that takes its place."""
    if why := unread(scene, "nodes", "pods"):
        yield "fits", f"not known: {why}"
        return
    others = sorted(node.name for node in scene.inputs.observed.nodes if node.name != pod.node)
    first: Counter[str] = Counter()
    for name in others:
        if reasons := fits(scene.fleet.what_if, pod, name):
            first[reasons[0]] += 1
    yield "fits", f"on {len(others) - first.total()} of {counted(len(others), 'other node' if pod.node else 'node')}"
    told = sorted(first.items(), key=lambda each: (-each[1], each[0]))
    for reason, nodes in told[:_MOST_REASONS]:
        yield "not on", f"{counted(nodes, 'node')}: {reason}"
    if more := sum(nodes for _, nodes in told[_MOST_REASONS:]):
        yield "not on", f"{counted(more, 'node')} for other reasons"
