"""Metrics of the cycles. Owns the counters, which one thread updates and another reads."""

from collections import Counter as Counts
from collections.abc import Iterator
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import generate_latest

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, later, unix_seconds
from reconciler.model.plan.decision import Decision, Delete, Evict, Hold, Ref
from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.drain.codes.emptying import DrainedNodeDeleted
from reconciler.plan.feature.feature import CycleGauge
from reconciler.plan.features import FEATURES
from reconciler.plan.scaling.marks import HARD_AHEAD_MS
from reconciler.plan.scaling.reasons import EmptyNodeDeleted
from reconciler.serve.smart_pod_metrics import SmartPodMetrics


class Metrics:
    """A Publisher of metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._count_cycles()
        self._smart_pods = SmartPodMetrics(self.registry)
        self._durations = Durations(self.registry)
        self._scale_down = ScaleDownMetrics(self.registry, self._durations)
        of_features = (gauge for feature in FEATURES for gauge in feature.gauges)
        self._gauges = [PublishedGauge(each, self.registry) for each in (*GAUGES, *of_features)]

    def _count_cycles(self) -> None:
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        self._cycles = counter("reconciler_cycles", "Cycles, by whether a plan was carried out.", ["result"])
        self._writes = counter("reconciler_writes", "Writes that were sent, by result.", ["verb", "result"])
        self._refused_now = gauge(
            "reconciler_writes_refused", "Objects whose last write the API server refused, by verb.", ["verb"]
        )
        self._refused: dict[Ref, str] = {}  # verb
        self._refused_verbs: set[str] = set()
        self._failures = counter(
            "reconciler_planner_failures", "Plans in which a planner failed, by planner and pool.", ["planner", "pool"]
        )
        self._cycle_at = gauge("reconciler_last_cycle_timestamp_seconds", "Start time of the last cycle.")
        self._seen_at = gauge("reconciler_seen_timestamp_seconds", "Time of the last complete snapshot of the cluster.")
        self._problems = gauge("reconciler_policy_problems", "Problems of policies that were refused.")
        self._leaderless = gauge("reconciler_leaderless", "1 while no replica leads.")
        self._leads = gauge("reconciler_leads", "1 while this replica leads.")

    def publish(self, cycled: CycleResult) -> None:
        self._cycles.labels("trouble" if cycled.trouble else "fine").inc()
        self._cycle_at.set(cycled.at / 1000)
        self._problems.set(len(cycled.problems))
        if cycled.inputs is not None:
            self._seen_at.set(cycled.inputs.observed.seen_at / 1000)
        for outcome in cycled.outcomes:
            self._writes.labels(outcome.verb, outcome.result).inc()
        self._count_refused(cycled)
        if cycled.plan is not None:
            for trouble in cycled.plan.troubles:
                self._failures.labels(trouble.planner, trouble.pool).inc()
        self._smart_pods.publish(cycled)
        self._scale_down.publish(cycled)
        for gauge in self._gauges:
            gauge.publish(cycled)
        self._durations.publish(cycled)

    def _count_refused(self, cycled: CycleResult) -> None:
        """Updates refused writes. A write that is no longer planned is removed."""
        if cycled.plan is not None:
            refs = {each.subject for each in cycled.plan.decisions if not isinstance(each.act, Hold)}
            self._refused = {subject: verb for subject, verb in self._refused.items() if subject in refs}
        for outcome in cycled.outcomes:
            if outcome.result == "refused":
                self._refused[outcome.subject] = outcome.verb
            else:
                self._refused.pop(outcome.subject, None)
        counts = Counts(self._refused.values())
        self._refused_verbs |= set(counts)
        for verb in self._refused_verbs:
            self._refused_now.labels(verb).set(counts[verb])

    def leaderless(self, is_leaderless: bool) -> None:
        """Sets whether no replica leads, as far as this replica knows."""
        self._leaderless.set(is_leaderless)

    def lead(self, leads: bool) -> None:
        """Sets whether this replica leads."""
        self._leads.set(leads)
        if not leads:
            self._smart_pods.forget()

    def text(self) -> bytes:
        """The metrics in the Prometheus text format."""
        return generate_latest(self.registry)


# --- Gauges over all planners, computed from the result of a cycle. A gauge of one planner is in its feature.py.


def _decisions(cycled: CycleResult) -> Counts[tuple[str, ...]] | None:
    return None if cycled.plan is None else Counts(map(_labels, cycled.plan.decisions))


def _labels(decision: Decision) -> tuple[str, str]:
    if isinstance(decision.act, Hold):
        return decision.planner, "hold"
    return decision.planner, "would" if decision.would else type(decision.act).__name__.lower()


def _set_aside(cycled: CycleResult) -> Counts[tuple[str, ...]] | None:
    if cycled.inputs is None:
        return None
    return Counts((each.kind, each.code) for each in cycled.inputs.observed.set_aside)


GAUGES = (
    CycleGauge("reconciler_decisions", "Decisions of the last plan.", ("planner", "action"), _decisions),
    CycleGauge(
        "reconciler_set_aside_objects",
        "Objects that cannot be parsed and are ignored.",
        ("kind", "reason"),
        _set_aside,
    ),
)


# --- Durations of the parts of a cycle, and of node removals. Owns the histograms, with the same threads as the other
# metrics.

WHOLE = "main"  # a cycle
EMPTY, NON_EMPTY = "scale_down_empty", "scale_down_non_empty"
# From a plan of a small cluster to the drain of a busy node.
_BUCKETS_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200)


class Durations:
    """Durations by function, with the label names of other autoscalers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "reconciler_function_duration_seconds",
            "Duration of the parts of a cycle, and of node removals from the first taint to the deletion.",
            ["function"],
            registry=registry,
            buckets=_BUCKETS_SECONDS,
        )
        for function in (EMPTY, NON_EMPTY):  # published before the first observation
            self._seconds.labels(function)

    def publish(self, cycled: CycleResult) -> None:
        for function, spent_ms in cycled.spent_ms:
            self.observe(function, spent_ms / 1_000)
        self.observe(WHOLE, sum(spent_ms for _, spent_ms in cycled.spent_ms) / 1_000)

    def observe(self, function: str, seconds: float) -> None:
        self._seconds.labels(function).observe(max(0.0, seconds))


# --- Metrics of node removals, separately for empty and drained nodes. Owns the counters, with the same threads as the
# other metrics.
#
# A node counts once, when its planned deletion took effect. The duration begins when the node was to stop accepting
# pods, by the time in its taint. Evictions count by result.

_EMPTY, _DRAINED = "empty", "underutilized"
_REASONS = {EmptyNodeDeleted.__name__: _EMPTY, DrainedNodeDeleted.__name__: _DRAINED}
# The same write within this time is one write: its effect was not visible when it was planned again.
_AGAIN_MS = 60_000


class ScaleDownMetrics:
    """Updated with each cycle."""

    def __init__(self, registry: CollectorRegistry, durations: Durations) -> None:
        self._durations = durations
        counter = partial(Counter, registry=registry)
        self._nodes = counter("reconciler_scaled_down_nodes", "Nodes that were deleted, by reason.", ["reason"])
        self._gpu_nodes = counter(
            "reconciler_scaled_down_gpu_nodes", "GPU nodes that were deleted, by reason and pool.", ["reason", "pool"]
        )
        self._evicted = counter("reconciler_evictions", "Evictions that were sent, by result.", ["result"])
        self._counted: dict[str, Instant] = {}  # node uids, and when they were counted

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
    """Time from which the node accepts no pods; for an empty node, some time before the deletion time in its taint."""
    taint = node.taint(names.DELETION_TIME if reason == _EMPTY else names.DRAINING)
    at = unix_seconds(taint.value) if taint is not None else None
    return None if at is None else later(at, -(HARD_AHEAD_MS if reason == _EMPTY else 0))


class PublishedGauge:
    """A gauge of GAUGES or of a feature. Owns its published label values."""

    def __init__(self, declared: CycleGauge, registry: CollectorRegistry) -> None:
        self._declared = declared
        self._gauge = Gauge(declared.name, declared.sentence, declared.labels, registry=registry)
        self._published: set[tuple[str, ...]] = set()

    def publish(self, cycled: CycleResult) -> None:
        values = self._declared.values(cycled)
        if values is None:
            return
        self._published |= values.keys()
        for labels in self._published:  # labels without a value are set to zero
            child = self._gauge.labels(*labels) if labels else self._gauge
            child.set(values.get(labels, 0))
