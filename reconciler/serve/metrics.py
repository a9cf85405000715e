"""What is measured of the cycles; owner of the counters, which one thread moves and another reads."""

from collections import Counter as Counts
from collections.abc import Iterable, Iterator

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
from reconciler.plan.feature.feature import Feature, FeatureGauge
from reconciler.plan.features import FEATURES
from reconciler.plan.scaling.marks import HARD_AHEAD_MS
from reconciler.plan.scaling.reasons import EmptyNodeDeleted
from reconciler.serve.smart_pod_metrics import SmartPodMetrics


class Metrics:
    """A Publisher."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._count_cycles()
        self._smart_pods = SmartPodMetrics(self.registry)
        self._durations = Durations(self.registry)
        self._scale_down = ScaleDownMetrics(self.registry, self._durations)
        self._features = FeatureGauges(self.registry, FEATURES)

    def _count_cycles(self) -> None:
        self._cycles = Counter(
            "reconciler_cycles", "Cycles, by whether a plan was carried out.", ["result"], registry=self.registry
        )
        self._writes = Counter(
            "reconciler_writes", "Writes that were sent, by what came of them.", ["verb", "result"],
            registry=self.registry,
        )  # fmt: skip
        self._refused_now = Gauge(
            "reconciler_writes_refused", "Objects of which the API server refused the last write, by verb.", ["verb"],
            registry=self.registry,
        )  # fmt: skip
        self._refused: dict[Ref, str] = {}  # verb
        self._refused_verbs: set[str] = set()
        self._failures = Counter(
            "reconciler_planner_failures", "Plans in which a planner raised, by the pool that it was planning for.",
            ["planner", "pool"], registry=self.registry,
        )  # fmt: skip
        self._decisions = Gauge(
            "reconciler_decisions", "Decisions of the last plan.", ["planner", "action"], registry=self.registry
        )
        self._counted: set[tuple[str, str]] = set()
        self._cycle_at = Gauge(
            "reconciler_last_cycle_timestamp_seconds", "When the last cycle began.", registry=self.registry
        )
        self._seen_at = Gauge(
            "reconciler_seen_timestamp_seconds", "When the cluster was last seen whole.", registry=self.registry
        )
        self._problems = Gauge(
            "reconciler_policy_problems", "Problems of policies that were refused.", registry=self.registry
        )
        self._set_aside = Gauge(
            "reconciler_set_aside_objects", "Objects that cannot be understood, and are set aside.", ["kind", "reason"],
            registry=self.registry,
        )  # fmt: skip
        self._aside: set[tuple[str, str]] = set()
        self._leaderless = Gauge("reconciler_leaderless", "1 while no replica leads.", registry=self.registry)
        self._leads = Gauge("reconciler_leads", "1 while this replica leads.", registry=self.registry)

    def publish(self, cycled: CycleResult) -> None:
        self._cycles.labels("trouble" if cycled.trouble else "fine").inc()
        self._cycle_at.set(cycled.at / 1000)
        self._problems.set(len(cycled.problems))
        if cycled.inputs is not None:
            self._seen_at.set(cycled.inputs.observed.seen_at / 1000)
            self._count_set_aside(Counts((each.kind, each.code) for each in cycled.inputs.observed.set_aside))
        for outcome in cycled.outcomes:
            self._writes.labels(outcome.verb, outcome.result).inc()
        self._count_refused(cycled)
        if cycled.plan is not None:
            for trouble in cycled.plan.troubles:
                self._failures.labels(trouble.planner, trouble.pool).inc()
            counts = Counts(map(_labels, cycled.plan.decisions))
            self._counted |= set(counts)
            for labels in self._counted:  # one that is not decided any more is told as none
                self._decisions.labels(*labels).set(counts[labels])
        self._smart_pods.publish(cycled)
        self._scale_down.publish(cycled)
        self._features.publish(cycled)
        self._durations.publish(cycled)

    def _count_refused(self, cycled: CycleResult) -> None:
        """What a plan does not ask for any more was refused for good."""
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

    def _count_set_aside(self, counts: Counts[tuple[str, str]]) -> None:
        self._aside |= set(counts)
        for labels in self._aside:  # a kind of which none is set aside any more is told as none
            self._set_aside.labels(*labels).set(counts[labels])

    def leaderless(self, is_leaderless: bool) -> None:
        """Whether nobody leads now, as far as this replica can tell."""
        self._leaderless.set(is_leaderless)

    def lead(self, leads: bool) -> None:
        """Whether this replica leads now."""
        self._leads.set(leads)
        if not leads:
            self._smart_pods.forget()

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)


def _labels(decision: Decision) -> tuple[str, str]:
    if isinstance(decision.act, Hold):
        return decision.planner, "hold"
    return decision.planner, "would" if decision.would else type(decision.act).__name__.lower()


# --- How long parts of a cycle take, and nodes that go; owner of the figures, moved like those in metrics.py.

WHOLE = "main"  # a cycle
EMPTY, NON_EMPTY = "scale_down_empty", "scale_down_non_empty"
# From a plan of a small cluster to the drain of a node full of work.
_BUCKETS_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200)


class Durations:
    """By the name of a function, as other autoscalers call it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "reconciler_function_duration_seconds",
            "How long the parts of a cycle take, and, from when a node is kept from pods until its deletion, nodes.",
            ["function"],
            registry=registry,
            buckets=_BUCKETS_SECONDS,
        )
        for function in (EMPTY, NON_EMPTY):  # told before there is the first
            self._seconds.labels(function)

    def publish(self, cycled: CycleResult) -> None:
        for function, spent_ms in cycled.spent_ms:
            self.observe(function, spent_ms / 1_000)
        self.observe(WHOLE, sum(spent_ms for _, spent_ms in cycled.spent_ms) / 1_000)

    def observe(self, function: str, seconds: float) -> None:
        """Once more."""
        self._seconds.labels(function).observe(max(0.0, seconds))


# --- What is measured of nodes that go, empty ones and those that were drained apart; owner of the figures, moved like
# those in metrics.py.
#
# A node counts once, when the deletion that its planner decided on took effect. How long it took counts from when it
# was to be kept from pods, by the time of the taint on it; what was evicted counts by what came of it.

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


# --- Gauges that features declare; owner of which label values have been published.


class FeatureGauges:
    """A Publisher."""

    def __init__(self, registry: CollectorRegistry, features: Iterable[Feature]) -> None:
        declared = [gauge for feature in features for gauge in feature.gauges]
        self._families = [_Family(each, registry) for each in declared]

    def publish(self, cycled: CycleResult) -> None:
        if cycled.plan is not None:
            for family in self._families:
                family.publish(cycled)


class _Family:
    """One gauge, and the label values that were published so far."""

    def __init__(self, declared: FeatureGauge, registry: CollectorRegistry) -> None:
        self._declared = declared
        self._gauge = Gauge(declared.name, declared.sentence, declared.labels, registry=registry)
        self._published: set[tuple[str, ...]] = set()

    def publish(self, cycled: CycleResult) -> None:
        values = self._declared.values(cycled)
        self._published |= values.keys()
        for labels in self._published:
            child = self._gauge.labels(*labels) if labels else self._gauge
            child.set(values.get(labels, 0))
