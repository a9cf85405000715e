"""Next step of each existing smart pod: a table of rules, the first matching rule decides.

A smart pod requests one machine by one launch option. If no machine comes within 30 s, the option has failed: the
smart pod is deleted, the shortage is remembered for the pool, and another smart pod tries the next option. While a
machine is in flight, or other in-flight machines of the pool may serve the smart pod, the request stays: Karpenter's
own time limits decide, and the deletion of the NodeClaim shows a failure. NodeClaims and nodes are never changed.
"""

from collections.abc import Callable
from enum import Enum

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, later, moment, unix_seconds
from reconciler.model.plan.capacity import Shortage
from reconciler.model.plan.decision import (
    Annotate,
    CodeFacts,
    Decision,
    Delete,
    Hold,
    Preconditions,
    Reason,
    Ref,
    pod_ref,
)
from reconciler.plan.capacity.demand import unschedulable_since
from reconciler.plan.capacity.offerings import REMEMBERED_MS, LaunchOption, LaunchOptions
from reconciler.plan.capacity.requests import Requested, is_usable, machine_phase
from reconciler.plan.smart_pods.context import SmartPodContext
from reconciler.plan.smart_pods.reasons import (
    SmartPodAttemptsSpent,
    SmartPodCleared,
    SmartPodDone,
    SmartPodDuplicate,
    SmartPodFailed,
    SmartPodMachineBought,
    SmartPodMachineLost,
    SmartPodOrphaned,
    SmartPodScheduled,
    SmartPodTimedOut,
    SmartPodWaits,
    SmartPodWithoutMachine,
    Unbought,
)

# --- Life cycle of a smart pod, as a table: phase and event give the next phase.
#
# Theory of operation. A smart pod is Pending until the scheduler binds the pod to the node that Karpenter bought for
# it, and Scheduled until that node is usable. NodeReady lasts only until the pod is deleted: then the smart pod is
# Completed, and the node stays. If no machine comes in time, the smart pod is Failed, and so is its launch option:
# another smart pod tries the next option. Phase and retries are annotations of the pod and everything else is observed,
# so a restart at any point loses nothing. A transition that is not in the table is refused with an error that names
# phase and event, and changes nothing.


class SmartPodPhase(Enum):
    """Phases of a smart pod. All but the last are annotations of the pod."""

    PENDING = "Pending"
    SCHEDULED = "Scheduled"
    NODE_READY = "NodeReady"
    COMPLETED = "Completed"
    FAILED = "Failed"


class PhaseEvent(Enum):
    """Observed events of a smart pod, its machine and its pods."""

    BOUGHT = "its NodeClaim exists"
    LOST = "its NodeClaim is gone"
    BOUND = "it is bound to its node"
    USABLE = "its node is usable"
    CLEANED = "it is deleted after success"
    NO_MACHINE = "no NodeClaim appeared in time"
    TIMED_OUT = "its deadline has passed"
    ENDED = "its kubelet terminated it"
    NOT_NEEDED = "no pod waits for it any more"
    DUPLICATE = "another smart pod has the same request"
    CLEARED = "it is deleted after a failure"


class InvalidTransition(Exception):
    """The phase has no such transition."""


TABLE: dict[tuple[SmartPodPhase, PhaseEvent], SmartPodPhase] = {
    (SmartPodPhase.PENDING, PhaseEvent.BOUGHT): SmartPodPhase.PENDING,
    (SmartPodPhase.PENDING, PhaseEvent.LOST): SmartPodPhase.PENDING,
    (SmartPodPhase.PENDING, PhaseEvent.BOUND): SmartPodPhase.SCHEDULED,
    (SmartPodPhase.PENDING, PhaseEvent.NO_MACHINE): SmartPodPhase.FAILED,
    (SmartPodPhase.PENDING, PhaseEvent.TIMED_OUT): SmartPodPhase.FAILED,
    (SmartPodPhase.PENDING, PhaseEvent.ENDED): SmartPodPhase.FAILED,
    (SmartPodPhase.PENDING, PhaseEvent.NOT_NEEDED): SmartPodPhase.COMPLETED,
    (SmartPodPhase.PENDING, PhaseEvent.DUPLICATE): SmartPodPhase.COMPLETED,
    (SmartPodPhase.SCHEDULED, PhaseEvent.USABLE): SmartPodPhase.NODE_READY,
    (SmartPodPhase.SCHEDULED, PhaseEvent.TIMED_OUT): SmartPodPhase.FAILED,
    (SmartPodPhase.SCHEDULED, PhaseEvent.ENDED): SmartPodPhase.FAILED,
    (SmartPodPhase.NODE_READY, PhaseEvent.CLEANED): SmartPodPhase.COMPLETED,
    (SmartPodPhase.FAILED, PhaseEvent.CLEARED): SmartPodPhase.COMPLETED,
    (SmartPodPhase.FAILED, PhaseEvent.NOT_NEEDED): SmartPodPhase.COMPLETED,
    (SmartPodPhase.FAILED, PhaseEvent.BOUND): SmartPodPhase.SCHEDULED,
}


_WRITTEN = (SmartPodPhase.PENDING, SmartPodPhase.SCHEDULED, SmartPodPhase.FAILED)


def after(phase: SmartPodPhase, *events: PhaseEvent) -> SmartPodPhase:
    """Phase after all events. Raises InvalidTransition."""
    for event in events:
        try:
            phase = TABLE[phase, event]
        except KeyError:
            raise InvalidTransition(
                f"a smart pod in phase {phase.value} has no transition for the event: {event.value}"
            ) from None
    return phase


def read(written: str) -> SmartPodPhase:
    """Phase from the annotation of a pod; values that reconciler never writes count as missing."""
    return next((each for each in _WRITTEN if each.value == written), SmartPodPhase.PENDING)


MACHINE_WITHIN_MS = 30_000


class Advanced(msgspec.Struct, frozen=True):
    """Decision about a smart pod, and the shortage to remember."""

    decision: Decision | None = None
    shortage: Shortage | None = None


class SmartPodView(msgspec.Struct, frozen=True, dict=True):
    """A smart pod that is advanced, with its context."""

    context: SmartPodContext
    each: Requested

    @property
    def ref(self) -> Ref:
        return pod_ref(self.each.pod)

    @property
    def phase(self) -> SmartPodPhase:
        """Observed phase. Only Failed is read from the annotation, because a failure can't be observed."""
        if self.each.pod.node:
            return SmartPodPhase.SCHEDULED
        return SmartPodPhase.FAILED if self.written is SmartPodPhase.FAILED else SmartPodPhase.PENDING

    @property
    def written(self) -> SmartPodPhase:
        return read(self.each.pod.metadata.annotations.phase)

    @property
    def choice(self) -> LaunchOption:
        request = self.each.request
        return LaunchOption(request.instance_type, request.capacity_type, request.zone)

    @property
    def created(self) -> Instant:
        return moment(self.each.pod.metadata.creation_timestamp) or Instant(0)

    @property
    def is_past_deadline(self) -> bool:
        return self.context.now >= self.created + 1000 * self.context.pool.spec.smart_pods.active_deadline_seconds

    @property
    def deadline_seconds(self) -> int:
        return self.context.pool.spec.smart_pods.active_deadline_seconds

    @property
    def waits_since(self) -> Instant | None:
        """Since when Karpenter could have bought a machine and did not; None while the pod is not visible to
        Karpenter.
        """
        instant = unschedulable_since(self.each.pod)
        if instant is None:
            return None
        since = self.each.pod.metadata.annotations.since
        lost = unix_seconds(since) or Instant(0)
        return max(self.created, instant, lost)

    def why(self, facts: CodeFacts) -> Reason:
        return Reason(facts, self.context.pool.origin())

    @property
    def timed_out(self) -> Reason:
        return self.why(SmartPodTimedOut(self.ref, self.deadline_seconds, self.choice))

    def gone(self, why: Reason, *events: PhaseEvent) -> Advanced:
        """Deletion of the smart pod. The events must lead to an end of the life cycle."""
        after(self.phase, *events)
        return Advanced(self.context.act(self.each.pod, Delete(), why))

    def noted(self, why: Reason, phase: SmartPodPhase, **texts: str | None) -> Advanced:
        """Annotation of the smart pod."""
        annotations = {names.PHASE: phase.value} | {_NAMES[key]: value for key, value in texts.items()}
        pod = self.each.pod
        presumes = Preconditions(resource_version=pod.metadata.resource_version)
        return Advanced(self.context.act(pod, Annotate(annotations=tuple(annotations.items()), presumes=presumes), why))

    def shortage(self, why: type[CodeFacts]) -> Shortage:
        now, choice = self.context.now, self.choice
        return Shortage(
            self.context.pool.name,
            choice.instance_type,
            choice.capacity_type,
            choice.zone,
            now,
            later(now, REMEMBERED_MS),
            self.context.spec_digest,
            why.__name__,
        )


_NAMES = {"claim": names.NODE_CLAIM, "since": names.SINCE}


def advance(context: SmartPodContext, each: Requested) -> Advanced:
    """Result of the first matching rule; empty if no rule matches."""
    case = SmartPodView(context, each)
    return next((advanced for rule in RULES if (advanced := rule(case)) is not None), Advanced())


def _node(name: str) -> Ref:
    return Ref("Node", "", name)


def _claim(name: str) -> Ref:
    return Ref("NodeClaim", "", name)


def _leaving(case: SmartPodView) -> Advanced | None:
    return Advanced() if case.each.pod.metadata.leaving else None


def _ended(case: SmartPodView) -> Advanced | None:
    """The kubelet terminated the pod, most likely because of its deadline."""
    if not case.each.pod.is_finished:
        return None
    return Advanced(case.context.act(case.each.pod, Delete(), case.timed_out))


def _arrived(case: SmartPodView) -> Advanced | None:
    """The node is usable, whether the smart pod is bound there or the scheduler has yet to do so. If the smart pod
    waited for the scheduler, it would no longer fit on the opened node, and Karpenter would buy another node.
    """
    node = case.each.node
    if node is None or not is_usable(node, case.context.passing):
        return None
    bound = [] if case.phase is SmartPodPhase.SCHEDULED else [PhaseEvent.BOUND]
    advanced = case.gone(
        case.why(SmartPodDone(case.ref, _node(node.name))), *bound, PhaseEvent.USABLE, PhaseEvent.CLEANED
    )
    # A machine that fits none of its pods would be bought again and again.
    unfit = case.each.name in case.context.draft.capacity.unfit
    return Advanced(advanced.decision, case.shortage(SmartPodDone)) if unfit else advanced


def _bound(case: SmartPodView) -> Advanced | None:
    pod = case.each.pod
    if not pod.node:
        return None
    if case.is_past_deadline and case.each.claim is None:
        return Advanced(case.context.act(pod, Delete(), case.timed_out), case.shortage(SmartPodTimedOut))
    why = case.why(SmartPodScheduled(case.ref, _node(pod.node)))
    if case.written is SmartPodPhase.SCHEDULED:
        return Advanced(case.context.act(pod, Hold(), why))
    return case.noted(why, after(case.written, PhaseEvent.BOUND), since=None)


def _failed(case: SmartPodView) -> Advanced | None:
    """The smart pod has reported that no machine is available. It is deleted after a while, or when an option may be
    tried again: while it exists, no other smart pod makes the same request.
    """
    if case.phase is not SmartPodPhase.FAILED:
        return None
    interval_ms = case.context.pool.spec.smart_pods.cleanup_interval.milliseconds
    since = case.each.pod.metadata.annotations.since
    due = later(unix_seconds(since) or Instant(0), interval_ms)
    if case.context.now >= due or case.context.outlook.may_request(case.context.now):
        return case.gone(case.why(SmartPodCleared(case.ref)), PhaseEvent.CLEARED)
    return Advanced(case.context.act(case.each.pod, Hold(due), _failure(case, case.context.outlook)))


def _failure(case: SmartPodView, outlook: LaunchOptions) -> Reason:
    """Why nothing more is requested: no launch option or no attempt is left."""
    if not outlook.is_limited:
        return case.why(SmartPodFailed(case.ref, outlook.tried))
    attempts, most = len(outlook.failed), outlook.most - 1
    return case.why(SmartPodAttemptsSpent(case.ref, attempts, outlook.tried, most))


def _duplicate(case: SmartPodView) -> Advanced | None:
    """Another smart pod has the same request and has progressed further: it has a machine, or is older."""
    mine = _rank(case.each)
    for other in case.context.requested:
        if other.request.key == case.each.request.key and other.name != case.each.name and _rank(other) < mine:
            return case.gone(case.why(SmartPodDuplicate(case.ref, pod_ref(other.pod))), PhaseEvent.DUPLICATE)
    return None


def _rank(each: Requested) -> tuple[bool, bool, bool, str, str]:
    pod = each.pod
    is_over = pod.metadata.leaving or pod.is_finished or pod.metadata.annotations.phase == SmartPodPhase.FAILED.value
    return is_over, not pod.node, each.claim is None, pod.metadata.creation_timestamp, each.name


def _bought(case: SmartPodView) -> Advanced | None:
    claim = case.each.claim
    if claim is None:
        return None
    reason = case.why(SmartPodMachineBought(case.ref, _claim(claim.name), machine_phase(claim)))
    if case.each.pod.metadata.annotations.node_claim == claim.name:
        return Advanced(case.context.act(case.each.pod, Hold(), reason))
    return case.noted(reason, after(case.phase, PhaseEvent.BOUGHT), claim=claim.name, since=None)


def _not_needed(case: SmartPodView) -> Advanced | None:
    if case.each.name in case.context.draft.capacity.used:
        return None
    return case.gone(case.why(SmartPodOrphaned(case.ref)), PhaseEvent.NOT_NEEDED)


def _lost(case: SmartPodView) -> Advanced | None:
    """Karpenter may buy another machine by itself, and gets as much time as for the first."""
    name = case.each.pod.metadata.annotations.node_claim
    if not name:
        return None
    since = str(case.context.now // 1000)
    why = case.why(SmartPodMachineLost(case.ref, _claim(name)))
    return case.noted(why, after(case.phase, PhaseEvent.LOST), claim=None, since=since)


def _without_machine(case: SmartPodView) -> Advanced | None:
    """No machine came in time, and no other in-flight machine of the pool may serve the smart pod."""
    since = case.waits_since
    if since is None or case.context.others_coming or case.context.now < since + MACHINE_WITHIN_MS:
        return None
    shortage = case.shortage(SmartPodWithoutMachine)
    outlook = case.context.outlook_with((shortage,))
    if outlook.is_exhausted:
        why = _failure(case, outlook)
        noted = case.noted(why, after(case.phase, PhaseEvent.NO_MACHINE), since=str(case.context.now // 1000))
        return Advanced(noted.decision, shortage)
    why = case.why(SmartPodWithoutMachine(case.ref, MACHINE_WITHIN_MS // 1000, case.choice))
    return Advanced(case.gone(why, PhaseEvent.NO_MACHINE).decision, shortage)


def _timed_out(case: SmartPodView) -> Advanced | None:
    """activeDeadlineSeconds does not end a pod that was never bound."""
    if not case.is_past_deadline:
        return None
    return case.gone(case.timed_out, PhaseEvent.TIMED_OUT)


def _waiting(case: SmartPodView) -> Advanced | None:
    since = case.waits_since
    until = later(case.created, 1000 * case.deadline_seconds)
    if since is not None and not case.context.others_coming:
        until = min(until, later(since, MACHINE_WITHIN_MS))
    unbought = Unbought.NO_CLAIM if since is not None else Unbought.UNSCHEDULED
    why = case.why(SmartPodWaits(case.ref, case.choice, unbought))
    return Advanced(case.context.act(case.each.pod, Hold(until), why))


# First match wins; the last one always applies.
RULES: tuple[Callable[[SmartPodView], Advanced | None], ...] = (
    _leaving,
    _ended,
    _arrived,
    _bound,
    _failed,
    _duplicate,
    _bought,
    _not_needed,
    _lost,
    _timed_out,
    _without_machine,
    _waiting,
)
