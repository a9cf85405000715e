"""Metrics of smart pods and of launched machines. Owns the figures, with the same threads as the other metrics.

Theory of operation. All metrics follow from consecutive cycles. Creations and results are executed decisions of the
planner; the number of smart pods and their waiting times are observed. Each smart pod is one attempt to get a node,
and each attempt has exactly one result, keyed by the uid of the pod: the first result that is decided, which for the
last launch option is the note that no option is left; or `lost`, if the pod disappeared without a deletion by this
process. A machine counts once, when it is first seen ready; machines that were ready when this process started do
not count. Finished attempts have no end time, so their duration ends when the end was first seen.
"""

from collections import Counter as Counts
from collections.abc import Iterator, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, moment, unix_seconds
from reconciler.model.plan.decision import Annotate, Apply, Decision, Delete, Facts, Ref
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.policy.gpu import SmartPods
from reconciler.plan.capacity.requests import SmartPodIdentity
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
_AGAIN_MS = 10_000
_BUCKETS_SECONDS = (15, 30, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1_800)


class SmartPodMetrics:
    """Updated with each cycle."""

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
            buckets=_BUCKETS_SECONDS,
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
        lately = {key: at for key, at in self._counted_at.items() if now - at < _AGAIN_MS}
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
        self._closed = {uid: at for uid, at in self._closed.items() if uid in there or now - at < _AGAIN_MS}
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
