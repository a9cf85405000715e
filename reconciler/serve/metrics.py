"""Metrics of the cycles. Owns the counters, which one thread updates and another reads."""

from collections import Counter as Counts
from collections.abc import Iterator, Mapping
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
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, later, moment, unix_seconds
from reconciler.model.plan.decision import Annotate, Apply, Decision, Delete, Evict, Facts, Hold, Ref
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.policy.gpu import SmartPods
from reconciler.plan.capacity.requests import SmartPodIdentity
from reconciler.plan.drain.codes.emptying import DrainedNodeDeleted
from reconciler.plan.feature.feature import CycleGauge
from reconciler.plan.features import FEATURES
from reconciler.plan.scaling.marks import HARD_AHEAD_MS
from reconciler.plan.scaling.reasons import EmptyNodeDeleted
from reconciler.plan.smart_pods.reasons import (
    PLANNER,
    SmartPodAttemptsSpent,
    SmartPodDone,
    SmartPodDuplicate,
    SmartPodFailed,
    SmartPodOrphaned,
    SmartPodTimedOut,
    SmartPodUnreadable,
    SmartPodWithoutMachine,
)
from reconciler.protocol.write_order import verb_of


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


def _labels(decision: Decision) -> tuple[str, str, str]:
    action = type(decision.act).__name__.lower()
    if decision.would and not isinstance(decision.act, Hold):
        action = "would"
    return decision.planner, action, decision.reason.code


def _set_aside(cycled: CycleResult) -> Counts[tuple[str, ...]] | None:
    if cycled.inputs is None:
        return None
    return Counts((each.kind, each.code) for each in cycled.inputs.observed.set_aside)


GAUGES = (
    CycleGauge(
        "reconciler_decisions",
        "Decisions of the last plan, holds included, by the code of the reason.",
        ("planner", "action", "reason"),
        _decisions,
    ),
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


# --- Metrics of smart pods and of launched machines. Owns the figures, with the same threads as the other metrics.
#
# Theory of operation. All metrics follow from consecutive cycles. Creations and results are executed decisions of the
# planner; the number of smart pods and their waiting times are observed. Each smart pod is one attempt to get a node,
# and each attempt has exactly one result, keyed by the uid of the pod: the first result that is decided, which for the
# last launch option is the note that no option is left; or `lost`, if the pod disappeared without a deletion by this
# process. A machine counts once, when it is first seen ready; machines that were ready when this process started do
# not count. Finished attempts have no end time, so their duration ends when the end was first seen.

PHASES = ("Pending", "Scheduled", "NodeReady", "Completed", "Failed")
_ENDED = frozenset({"Completed", "Failed"})
# Result of an attempt, by the reason for its deletion or for its failure note.
_RESULTS: Mapping[type[Facts], str] = {
    SmartPodDone: "completed",
    SmartPodWithoutMachine: "failed",
    SmartPodFailed: "failed",
    SmartPodAttemptsSpent: "failed",
    SmartPodTimedOut: "timeout",
    SmartPodOrphaned: "orphaned",
    SmartPodDuplicate: "duplicate",
    SmartPodUnreadable: "unreadable",
}
_LOST = "lost"
_FAILED = ("failed", "timeout")
_CLAIMS, _PODS = "nodeclaims.karpenter.sh", "pods"
_INITIALIZED = "Initialized"
# The same write within this time is one write: its effect was not visible when it was planned again.
_POD_AGAIN_MS = 10_000
_PROVISION_BUCKETS_SECONDS = (15, 30, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1_800)


class SmartPodMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self._created = counter("reconciler_smart_pods_created", "Smart pods that were created.")
        self._finished = counter(
            "reconciler_smart_pods_finished", "Smart pods that were deleted, by result.", ["result"]
        )
        self._active = gauge("reconciler_smart_pods_active", "Existing smart pods, by phase.", ["phase"])
        self._pending = gauge("reconciler_smart_pods_pending_seconds", "Age of the oldest pending smart pod.")
        self._leftover = gauge("reconciler_smart_pods_leftover", "Smart pods that should have been deleted.")
        self._success = gauge(
            "reconciler_scaling_success_rate", "Share of finished smart pods that got a machine; 1 if none finished."
        )
        self._provision = Histogram(
            "reconciler_nodeclaim_provision_duration_seconds",
            "Time from creation to initialization of a NodeClaim.",
            buckets=_PROVISION_BUCKETS_SECONDS,
            registry=registry,
        )
        self._results: Counts[str] = Counts()
        self._phases = set(PHASES)
        self._counted_at: dict[tuple[Ref, str], Instant] = {}
        self._initialized: set[str] | None = None  # claim uids; None before the first snapshot
        self._ended_at: dict[str, Instant] = {}  # by pod uid, when the end of the pod was first seen
        self._open: set[str] = set()  # uids of seen pods without a result
        self._closed: dict[str, Instant] = {}  # by pod uid, when the pod got its result
        for result in sorted({*_RESULTS.values(), _LOST}):
            self._finished.labels(result)
        for phase in PHASES:
            self._active.labels(phase)
        self._success.set(1)

    def publish(self, cycled: CycleResult) -> None:
        for decision in _done(cycled):
            if self._is_new(decision, cycled.at):
                self._count(decision, cycled.at)
        if cycled.inputs is not None:
            observed = cycled.inputs.observed
            if not observed.why_unread(_PODS):
                is_smart = SmartPodIdentity(cycled.inputs.desired).is_smart
                self._look(cycled.inputs.desired, [each for each in observed.pods if is_smart(each)], cycled.at)
            if not observed.why_unread(_CLAIMS):
                self._time(observed)

    def _is_new(self, decision: Decision, now: Instant) -> bool:
        lately = {key: at for key, at in self._counted_at.items() if now - at < _POD_AGAIN_MS}
        key = decision.subject, verb_of(decision)
        self._counted_at = {key: now} | lately
        return key not in lately

    def forget(self) -> None:
        """Another replica leads now, and observes the ends of the open attempts."""
        self._open.clear()

    def _count(self, decision: Decision, now: Instant) -> None:
        result = _RESULTS.get(type(decision.reason.facts))
        if isinstance(decision.act, Apply):
            self._created.inc()
        elif isinstance(decision.act, Delete | Annotate) and result:
            self._close(decision.subject.uid, result, now)

    def _close(self, uid: str, result: str, now: Instant) -> None:
        """Records the first result of an attempt."""
        self._open.discard(uid)
        if uid in self._closed:
            return
        self._closed[uid] = now
        self._finished.labels(result).inc()
        self._results[result] += 1
        completed, failed = self._results["completed"], sum(self._results[each] for each in _FAILED)
        self._success.set(completed / (completed + failed) if completed + failed else 1)

    def _follow(self, pods: list[Pod], now: Instant) -> None:
        """Updates open attempts. A pod that failed before this process started already has its result."""
        there = {each.metadata.uid for each in pods}
        for uid in sorted(self._open - there):
            self._close(uid, _LOST, now)
        self._closed = {uid: at for uid, at in self._closed.items() if uid in there or now - at < _POD_AGAIN_MS}
        self._open |= {
            each.metadata.uid for each in pods if each.metadata.uid not in self._closed and _phase(each) != "Failed"
        }

    def _look(self, desired: Desired, pods: list[Pod], now: Instant) -> None:
        self._follow(pods, now)
        phases = Counts(_phase(each) for each in pods)
        self._phases |= set(phases)
        for phase in sorted(self._phases):  # a phase without pods is set to zero
            self._active.labels(phase).set(phases[phase])
        waits = [now - since for each in pods if _phase(each) == "Pending" and (since := _since(each)) is not None]
        self._pending.set(max([*waits, 0]) / 1000)
        ended = (each.metadata.uid for each in pods if each.is_finished or _phase(each) in _ENDED)
        self._ended_at = {uid: self._ended_at.get(uid, now) for uid in ended}
        self._leftover.set(sum(self._is_left(desired, each, now) for each in pods))

    def _is_left(self, desired: Desired, pod: Pod, now: Instant) -> bool:
        pool = desired.pool(pod.metadata.labels.get(names.POOL, ""))
        said = pool.spec.smart_pods if pool else SmartPods()
        late_ms = 2 * said.cleanup_interval.milliseconds
        if (ended := self._ended_at.get(pod.metadata.uid)) is not None:
            return now - ended > late_ms
        lives_seconds = pod.spec.active_deadline_seconds or said.active_deadline_seconds
        since = _since(pod)
        return since is not None and now - since > lives_seconds * 1000 + late_ms

    def _time(self, observed: Observed) -> None:
        before = self._initialized
        self._initialized = set()
        for claim in observed.node_claims:
            said = claim.condition(_INITIALIZED)
            if said is None or said.status != "True":
                continue
            self._initialized.add(claim.metadata.uid)
            made, ready = moment(claim.metadata.creation_timestamp), moment(said.last_transition_time)
            if before is not None and claim.metadata.uid not in before and made is not None and ready is not None:
                self._provision.observe(max(ready - made, 0) / 1000)


def _done(cycled: CycleResult) -> Iterator[Decision]:
    """Executed decisions of the planner about pods."""
    done = {(each.subject, each.verb) for each in cycled.outcomes if each.result == "done"}
    for decision in cycled.plan.decisions if cycled.plan and done else ():
        is_ours = decision.planner == PLANNER and decision.subject.kind == "Pod"
        if is_ours and (decision.subject, verb_of(decision)) in done:
            yield decision


def _phase(pod: Pod) -> str:
    """Phase of the pod; a new pod has no phase annotation yet."""
    return pod.metadata.annotations.phase or PHASES[0]


def _since(pod: Pod) -> Instant | None:
    """When the wait began: creation of the pod, or its last retry with another launch option."""
    again = unix_seconds(pod.metadata.annotations.since)
    made = moment(pod.metadata.creation_timestamp)
    return max(made, again) if again is not None and made is not None else made
