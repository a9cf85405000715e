"""What is measured of nodes that go, empty ones and those that were drained apart; owner of the figures, moved like
those in metrics.py.

A node counts once, when the deletion that its planner decided on took effect. How long it took counts from when it
was to be kept from pods, by the time of the taint on it; what was evicted counts by what came of it.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, later, unix_seconds
from reconciler.model.plan.action import Delete, Evict
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.model.plan.decision import Decision
from reconciler.plan.drain.codes.emptying import DrainedNodeDeleted
from reconciler.plan.scaling.marks import HARD_AHEAD_MS
from reconciler.plan.scaling.reasons import EmptyNodeDeleted
from reconciler.serve.durations import EMPTY, NON_EMPTY, Durations

_EMPTY, _DRAINED = "empty", "underutilized"
_REASONS = {EmptyNodeDeleted.__name__: _EMPTY, DrainedNodeDeleted.__name__: _DRAINED}
# The same write within this time is one write: what it did was not seen yet when it was decided on again.
_AGAIN_MS = 60_000


class ScaleDownMetrics:
    """Told of each cycle."""

    def __init__(self, registry: CollectorRegistry, durations: Durations) -> None:
        self._durations = durations
        labels = ["reason"]
        self._nodes = Counter(
            "reconciler_scaled_down_nodes", "Nodes that were deleted, by why they could go.", labels, registry=registry
        )
        self._gpu_nodes = Counter(
            "reconciler_scaled_down_gpu_nodes", "The same of nodes with GPUs, by their pool.", [*labels, "pool"],
            registry=registry,
        )  # fmt: skip
        self._evicted = Counter(
            "reconciler_evictions", "Pods that were asked to leave, by what came of it.", ["result"], registry=registry
        )
        self._counted: dict[str, Instant] = {}  # uids of nodes, and when they were counted

    def publish(self, cycled: CycleResult) -> None:
        if cycled.plan is None:
            return
        self._counted = {uid: at for uid, at in self._counted.items() if 0 <= cycled.at - at < _AGAIN_MS}
        results = {each.subject: each.result for each in cycled.outcomes}
        for decision in cycled.plan.decisions if results else ():
            result = results.get(decision.subject)
            if result is not None and isinstance(decision.act, Evict):
                self._evicted.labels(result).inc(1 + len(decision.act.others))
            if result == "done" and isinstance(decision.act, Delete):
                self._count(decision, cycled)

    def _count(self, decision: Decision, cycled: CycleResult) -> None:
        reason, uid = _REASONS.get(decision.reason.code), decision.subject.uid
        if reason is None or decision.would or uid in self._counted:
            return
        self._counted[uid] = cycled.at
        self._nodes.labels(reason).inc()
        for node in _nodes(cycled, uid):
            if node.gpus:
                self._gpu_nodes.labels(reason, node.pool).inc()
            began = _kept_from_pods_at(node, reason)
            if began is not None:
                self._durations.observe(EMPTY if reason == _EMPTY else NON_EMPTY, (cycled.at - began) / 1_000)


def _nodes(cycled: CycleResult, uid: str) -> Iterator[Node]:
    observed = cycled.inputs.observed.nodes if cycled.inputs is not None else ()
    return (each for each in observed if each.metadata.uid == uid)


def _kept_from_pods_at(node: Node, reason: str) -> Instant | None:
    """An empty one is kept from pods for some time before the one that its taint tells."""
    taint = node.taint(names.DELETION_TIME if reason == _EMPTY else names.DRAINING)
    at = unix_seconds(taint.value) if taint is not None else None
    return None if at is None else later(at, -(HARD_AHEAD_MS if reason == _EMPTY else 0))
