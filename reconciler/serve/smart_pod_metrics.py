"""What is measured of smart pods and of the machines that come; owner of the figures, moved like those in metrics.py.

Theory of operation. All of it follows from one cycle after the other. What was made, and how it ended, are decisions of
the planner that were done; how many there are, and how long they wait, is seen. Each smart pod is one attempt to get a
node, and each attempt ends in exactly one result, known by the uid of the pod: the first that is decided, which for the
last of all ways to buy is the note that none is left; or `lost`, where the pod is gone and nobody here deleted it. A
machine counts once, when it is first seen ready: those that were ready when this process first
looked came before its time, and count for nobody. What has
ended carries no time at which it did, so its time runs from when it was first seen so.
"""

from collections import Counter as Counts
from collections.abc import Iterator, Mapping

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
# What became of one, by the reason for which it is deleted or noted to have failed.
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
# The same write within this time is one write: what it did was not seen yet when it was decided on again.
_AGAIN_MS = 10_000
_BUCKETS_SECONDS = (15, 30, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1_800)


class SmartPodMetrics:
    """Told of each cycle."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._created = Counter("reconciler_smart_pods_created", "Smart pods that were made.", registry=registry)
        self._finished = Counter(
            "reconciler_smart_pods_finished", "Smart pods that were deleted, by what became of them.", ["result"],
            registry=registry,
        )  # fmt: skip
        self._active = Gauge(
            "reconciler_smart_pods_active", "Smart pods that there are, by phase.", ["phase"], registry=registry
        )
        self._pending = Gauge(
            "reconciler_smart_pods_pending_seconds", "For how long the oldest pending smart pod has been.",
            registry=registry,
        )  # fmt: skip
        self._leftover = Gauge(
            "reconciler_smart_pods_leftover", "Smart pods that should have been cleared away.", registry=registry
        )
        self._success = Gauge(
            "reconciler_scaling_success_rate", "Share of smart pods whose machine came; 1 while none has ended.",
            registry=registry,
        )  # fmt: skip
        self._provision = Histogram(
            "reconciler_nodeclaim_provision_duration_seconds", "From a NodeClaim's creation until it is initialized.",
            buckets=_BUCKETS_SECONDS, registry=registry,
        )  # fmt: skip
        self._results: Counts[str] = Counts()
        self._phases = set(PHASES)
        self._counted_at: dict[tuple[Ref, str], Instant] = {}
        self._initialized: set[str] | None = None  # uids of claims; None before any were seen
        self._ended_at: dict[str, Instant] = {}  # when a pod was first seen to have ended, by its uid
        self._open: set[str] = set()  # uids of pods that were seen, and have no result yet
        self._closed: dict[str, Instant] = {}  # when a pod got its result, by its uid
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
                self._look(cycled.inputs.desired, _smart_pods(cycled.inputs.desired, observed), cycled.at)
            if not observed.why_unread(_CLAIMS):
                self._time(observed)

    def _is_new(self, decision: Decision, now: Instant) -> bool:
        lately = {key: at for key, at in self._counted_at.items() if now - at < _AGAIN_MS}
        key = decision.subject, verb_of(decision)
        self._counted_at = {key: now} | lately
        return key not in lately

    def forget(self) -> None:
        """Another replica leads from now on: how the attempts that are open here will end is seen there."""
        self._open.clear()

    def _count(self, decision: Decision, now: Instant) -> None:
        result = _RESULTS.get(type(decision.reason.facts))
        if isinstance(decision.act, Apply):
            self._created.inc()
        elif isinstance(decision.act, Delete | Annotate) and result:
            self._close(decision.subject.uid, result, now)

    def _close(self, uid: str, result: str, now: Instant) -> None:
        """The first result of an attempt counts."""
        self._open.discard(uid)
        if uid in self._closed:
            return
        self._closed[uid] = now
        self._finished.labels(result).inc()
        self._results[result] += 1
        completed, failed = self._results["completed"], sum(self._results[each] for each in _FAILED)
        self._success.set(completed / (completed + failed) if completed + failed else 1)

    def _follow(self, pods: list[Pod], now: Instant) -> None:
        """Which attempts are open. A pod that failed before this process looked has had its result."""
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
        for phase in sorted(self._phases):  # one that none is in any more is told as none
            self._active.labels(phase).set(phases[phase])
        waits = [now - since for each in pods if _phase(each) == "Pending" and (since := _since(each)) is not None]
        self._pending.set(max([*waits, 0]) / 1000)
        ended = {each.metadata.uid: self._ended_at.get(each.metadata.uid, now) for each in pods if _has_ended(each)}
        self._ended_at = ended
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
    """What the planner decided about pods, and was done."""
    done = {(each.subject, each.verb) for each in cycled.outcomes if each.result == "done"}
    for decision in cycled.plan.decisions if cycled.plan and done else ():
        is_ours = decision.planner == PLANNER and decision.subject.kind == "Pod"
        if is_ours and (decision.subject, verb_of(decision)) in done:
            yield decision


def _smart_pods(desired: Desired, observed: Observed) -> list[Pod]:
    is_smart = SmartPodIdentity(desired).is_smart
    return [each for each in observed.pods if is_smart(each)]


def _phase(pod: Pod) -> str:
    """One that has only just been made bears none yet."""
    return pod.metadata.annotations.phase or PHASES[0]


def _has_ended(pod: Pod) -> bool:
    return pod.is_finished or _phase(pod) in _ENDED


def _since(pod: Pod) -> Instant | None:
    """When it began to wait: at its creation, or when another way to buy was tried."""
    again = unix_seconds(pod.metadata.annotations.since)
    made = moment(pod.metadata.creation_timestamp)
    return max(made, again) if again is not None and made is not None else made
