"""Graceful eviction: notice for pods to save their work, cancellation of the notice, grace periods, and the pace of
evictions.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_classes import Needs, PodClass, Rank, Request
from reconciler.fleet.rows import Mask
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, later, moment, timestamp, unix_seconds
from reconciler.model.plan.decision import Annotate, Decision, Hold, Preconditions, Reason, Ref, pod_ref
from reconciler.model.plan.drain_memory import Evicted
from reconciler.plan.capacity.demand import Gang
from reconciler.plan.drain.codes.emptying import (
    EvictionCalledOff,
    PodCheckpointUnreadable,
    PodEvicted,
    PodEvictedSaved,
    PodEvictedUnsaved,
    PodSavesItsWork,
    PodToldToSave,
    PodToldToSaveSooner,
    PodWaitsForAnother,
    SuccessorUnseen,
)
from reconciler.plan.drain.context import DrainContext, DrainNode, ref_of_evicted
from reconciler.plan.drain.marks import draining_mark
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.karpenter.budgets import nanoseconds
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.recent_evictions import OBSERVED_KINDS, owner_of, wanted_by

# --- Cancellation of notices for pods that stay.
#
# A notice is cancelled when the node is no longer draining: the drain was cancelled, or its DrainPolicy is suspended or
# deleted. Decided from the node alone, so notices of drains that ended while no controller ran are cancelled too.


def called_off(context: DrainContext, gangs: frozenset[Gang]) -> Iterator[Decision]:
    """Cancel notices of pods that stay. Nodes that others remove are skipped, and pods that leave because of
    pressure. `gangs`: leaving gangs, whose pods keep their notices on every node.
    """
    for pod in context.fleet.occupancy.notified_pods:
        node = context.fleet.node(pod.node)
        pool = context.pools.get(node.pool) if node is not None else None
        if node is None or pool is None or untouchable(node) is not None or _is_emptied(context, node):
            continue
        if context.draft.gangs.of(pod) in gangs or pod.metadata.uid in context.draft.migrating:
            continue
        if not pod.metadata.leaving and not context.is_claimed(pod_ref(pod)):
            subject = pod_ref(pod)
            reason = Reason(EvictionCalledOff(pod=subject, node=node.name), pool.origin())
            act = Annotate(annotations=((names.EVICT_AT, None),), presumes=notice_precondition(pod))
            yield Decision(PLANNER, subject, act, reason, pool.name)


def _is_emptied(context: DrainContext, node: Node) -> bool:
    return node.pool in context.policy_of and draining_mark(node) is not None


# --- Notice: time for a pod to save its work before the eviction, if the pod asks for some.
#
# Theory of operation. A pod with gpu.scheduling/checkpoint gets a notice first: the annotation gpu.scheduling/evict-at
# on the pod is the only record. The pod is evicted as soon as gpu.scheduling/checkpointed-at is later than the notice,
# or at evict-at, whichever is first. Times are compared in seconds, because many programs write no fractions.
#
# A notice from before the drain of the node, or with a time too far ahead, belongs to something else and is written
# again. A wish longer than maxGracefulTerminationSeconds is cut to that limit, and an unreadable wish gets the same
# limit, because the author wanted some time. A pod that has not started has nothing to save.


class CheckpointTime(msgspec.Struct, frozen=True, gc=False):
    """How long a pod has to save its work, and whether that is as long as the pod asks for."""

    length_ms: int
    is_cut: bool = False  # cut to the limit of the policy
    is_unreadable: bool = False


class CheckpointNotice(msgspec.Struct, frozen=True, gc=False):
    """Times of a notice that a pod has."""

    notified_at: Instant
    evict_at: Instant


def saving(context: DrainContext, drain_node: DrainNode, pod: Pod) -> Decision | None:
    """Notice for the pod, or a hold until the notice ends; None if the pod may be evicted now."""
    wish = wish_of(drain_node, pod)
    if wish is None:
        return None
    notice = _read_notice(context, drain_node, pod, wish)
    if notice is None:
        at = later(context.now, wish.length_ms)
        act = Annotate(annotations=((names.EVICT_AT, timestamp(at)),), presumes=notice_precondition(pod))
        return context.act_on(pod, drain_node, act, _checkpoint_reason(drain_node, pod, wish, at))
    if notice.evict_at <= context.now or _has_saved(pod, notice):
        return None
    facts = PodSavesItsWork(pod=pod_ref(pod), node=drain_node.name, time=notice.evict_at)
    return context.act_on(pod, drain_node, Hold(notice.evict_at), drain_node.reason(facts))


def _checkpoint_reason(drain_node: DrainNode, pod: Pod, wish: CheckpointTime, at: Instant) -> Reason:
    subject, seconds = pod_ref(pod), wish.length_ms // 1_000
    if not (wish.is_cut or wish.is_unreadable):
        return drain_node.reason(PodToldToSave(pod=subject, node=drain_node.name, time=at, seconds=seconds))
    code = PodCheckpointUnreadable if wish.is_unreadable else PodToldToSaveSooner
    written = pod.metadata.annotations.checkpoint
    facts = code(
        pod=subject, node=drain_node.name, written=written, seconds=seconds, policy=drain_node.policy_ref, time=at
    )
    return drain_node.reason(facts, "maxGracefulTerminationSeconds")


def notice_precondition(pod: Pod) -> Preconditions:
    """Precondition that the notice is unchanged. Otherwise a late observation could repeat the notice again and again,
    and then evict by a time that no longer applies.
    """
    annotations = pod.metadata.annotations
    if not (annotations.checkpoint or annotations.evict_at):
        return Preconditions()
    has_not_begun = (("status.phase", "Pending"),) if pod.status.phase == "Pending" else ()
    return Preconditions(fields=((f"metadata.annotations[{names.EVICT_AT}]", annotations.evict_at), *has_not_begun))


def why_evicted(context: DrainContext, drain_node: DrainNode, pod: Pod, home: str) -> Reason:
    """Reason of an eviction: whether the pod saved its work, if the pod had a notice."""
    notice, subject = notice_of(context, drain_node, pod), pod_ref(pod)
    if notice is None:
        return drain_node.reason(PodEvicted(pod=subject, node=drain_node.name, home=home))
    if _has_saved(pod, notice):
        written = pod.metadata.annotations.checkpointed_at
        return drain_node.reason(PodEvictedSaved(pod=subject, written=written, node=drain_node.name, home=home))
    seconds = (notice.evict_at - notice.notified_at) // 1_000
    unsaved = PodEvictedUnsaved(pod=subject, seconds=seconds, node=drain_node.name, home=home)
    return drain_node.reason(unsaved, "maxGracefulTerminationSeconds")


def wish_of(drain_node: DrainNode, pod: Pod) -> CheckpointTime | None:
    """Time that the pod asks for, within the limit; None if the pod asks for none."""
    written = pod.metadata.annotations.checkpoint
    if not written or pod.status.phase == "Pending":
        return None
    most_ms = 1_000 * drain_node.policy.spec.max_graceful_termination_seconds
    try:
        length_ms = nanoseconds(written) // 1_000_000
    except ValueError:
        return CheckpointTime(most_ms, is_unreadable=True) if most_ms else None
    if length_ms > most_ms:
        return CheckpointTime(most_ms, is_cut=True) if most_ms else None
    return CheckpointTime(length_ms) if length_ms > 0 else None


def notice_of(context: DrainContext, drain_node: DrainNode, pod: Pod) -> CheckpointNotice | None:
    """Notice of the pod, if the notice belongs to this drain."""
    wish = wish_of(drain_node, pod)
    return _read_notice(context, drain_node, pod, wish) if wish is not None else None


def _read_notice(
    context: DrainContext, drain_node: DrainNode, pod: Pod, wish: CheckpointTime
) -> CheckpointNotice | None:
    at = moment_of(pod.metadata.annotations.evict_at)
    since = drain_node.draining_since
    if at is None or since is None or at > context.now + wish.length_ms or at - wish.length_ms < since:
        return None
    return CheckpointNotice(later(at, -wish.length_ms), at)


def _has_saved(pod: Pod, notice: CheckpointNotice) -> bool:
    at = moment_of(pod.metadata.annotations.checkpointed_at)
    return at is not None and at // 1_000 >= notice.notified_at // 1_000


def moment_of(written: str) -> Instant | None:
    """Time from RFC 3339 or unix seconds; None if unreadable."""
    seconds = unix_seconds(written)
    return moment(written) if seconds is None else seconds


# --- Which pods may be on their way at once: pods that can't take each other's room, whatever nodes the scheduler
# chooses.
#
# Theory of operation. Destinations were found for all leaving pods, but the scheduler may choose other nodes: a small
# pod may take the only gap that was large enough for a larger pod. The larger pod would wait for a new machine, for
# which other nodes would be drained again, without end. Pods with equal requests can't do that: wherever one goes,
# enough room is left for the others. Different pods are on their way together only if each has more nodes to choose
# from than other pods are on their way, because each of these can take one node. Other pods wait until earlier pods are
# scheduled. A gang leaves as a whole when it may, or when no pod is on its way; until then no other pod leaves.

_Kind = tuple[Needs, Request] | PodClass


class SettingOut:
    """Pods on their way while one plan evicts pods. Mutable."""

    def __init__(self, context: DrainContext, on_their_way: Iterable[Pod]) -> None:
        self._snapshot, self._unsettled = context.fleet.snapshot, context.fleet.nodes_unsettled
        self._kinds: dict[_Kind, PodClass] = {}  # one class of each kind
        self._nodes: dict[PodClass, int] = {}
        self._is_shut = False
        self.count = 0
        for pod in on_their_way:
            self.take(pod)

    def rank(self, pod: Pod) -> Rank:
        """Sort key: pods that are hardest to place leave first."""
        return self._class(pod).rank

    def may(self, pod: Pod) -> bool:
        """Whether the pod may leave now."""
        return not self._is_shut and self._have_room([pod])

    def may_together(self, pods: Sequence[Pod]) -> bool:
        """Whether a gang may leave now. If not, all other pods wait for the gang."""
        may = not self._is_shut and (not self.count or self._have_room(pods))
        self._is_shut |= not may
        return may

    def _have_room(self, pods: Sequence[Pod]) -> bool:
        kinds = self._kinds | {_kind(each): each for each in map(self._class, pods)}
        others = self.count + len(pods) - 1
        return len(kinds) == 1 or all(self._nodes_for(each) > others for each in kinds.values())

    def take(self, pod: Pod) -> None:
        """Count the pod as on its way."""
        self._kinds.setdefault(_kind(self._class(pod)), self._class(pod))
        self.count += 1

    def _class(self, pod: Pod) -> PodClass:
        return self._snapshot.classes.of(pod).anew

    def _nodes_for(self, pod_class: PodClass) -> int:
        result = self._nodes.get(pod_class)
        if result is None:
            mask = self._snapshot.part(FilterChain).mask(pod_class) & self._stays
            result = self._nodes[pod_class] = int(mask.sum())
        return result

    @cached_property
    def _stays(self) -> Mask:
        rows = self._snapshot.rows
        mask = rows.alive.copy()
        for facts in self._unsettled:
            mask[rows.row_of[facts.name]] = False
        return mask


def _kind(pod_class: PodClass) -> _Kind:
    """Kind of a pod class. Each class with rules about other pods is a kind of its own."""
    return (pod_class.needs, pod_class.request) if pod_class.is_plain else pod_class


# --- Grace period of an evicted pod: as long as the pod asks for, at most the limit of the policy.

_USUAL_SECONDS = 30


def grace_of(drain_node: DrainNode, pod: Pod) -> int:
    """Grace period of one pod, in seconds."""
    return longest_grace(drain_node, [pod])


def longest_grace(drain_node: DrainNode, pods: Iterable[Pod]) -> int:
    """Grace period of pods that leave together: the longest that any of them asks for."""
    wished = [pod.spec.termination_grace_period_seconds for pod in pods]
    longest = max((_USUAL_SECONDS if each is None else each for each in wished), default=_USUAL_SECONDS)
    return min(longest, drain_node.policy.spec.max_graceful_termination_seconds)


# --- Old observations: one pod of a workload at a time, and the next after a successor was observed.
#
# Evictions are safe on any observation as far as PodDisruptionBudgets go, because the API server checks budgets itself.
# But if the observation is old, a workload may be in worse shape than it looks: the successors of its evicted pods may
# hang. So one of its pods is evicted at a time, and only if for each recently evicted pod a newer pod was observed, or
# if the workload has all its pods again.


class Successors:
    """Workloads with an evicted pod in this plan, if the observation is old. Mutable."""

    def __init__(self, context: DrainContext) -> None:
        self._context = context
        self._old = context.inputs.observed.quiet_among(*OBSERVED_KINDS)
        self._refs: dict[str, Ref] = {}  # uid of an owner -> its evicted pod

    def note_eviction(self, pod: Pod) -> None:
        """Record an eviction or a notice."""
        self._refs.setdefault(owner_of(pod), pod_ref(pod))

    def why_not(self, drain_node: DrainNode, pod: Pod) -> Reason | None:
        """Why the pod waits; None if the observation is not old."""
        owner = owner_of(pod)
        if self._old is None or not owner:
            return None
        subject = pod_ref(pod)
        if before := self._refs.get(owner):
            return drain_node.reason(
                PodWaitsForAnother(pod=subject, before=before, old=self._old, node=drain_node.name)
            )
        others = [each for each in self._evicted.get(owner, ()) if each.uid != pod.metadata.uid]
        if not others or self._have_come(owner, others):
            return None
        last = max(others)
        facts = SuccessorUnseen(
            pod=subject, before=ref_of_evicted(last), time=last.at, old=self._old, node=drain_node.name
        )
        return drain_node.reason(facts)

    @cached_property
    def _evicted(self) -> dict[str, list[Evicted]]:
        evicted_pods: dict[str, list[Evicted]] = {}
        for each in self._context.memory.evicted:
            evicted_pods.setdefault(each.owner, []).append(each)
        return evicted_pods

    @cached_property
    def _there(self) -> dict[str, list[Pod]]:
        """Pods by uid of their owner."""
        pods: dict[str, list[Pod]] = {}
        for pod in self._context.inputs.observed.pods:
            if not pod.metadata.leaving and not pod.is_finished:
                pods.setdefault(owner_of(pod), []).append(pod)
        return pods

    def _have_come(self, owner: str, evicted: list[Evicted]) -> bool:
        gone = {each.uid for each in evicted}
        there = [pod for pod in self._there.get(owner, ()) if pod.metadata.uid not in gone]
        wanted = wanted_by(self._context.inputs.observed.workloads, {owner}).get(owner)
        since = min(each.first for each in evicted) // 1_000 * 1_000
        newer = sum((moment(pod.metadata.creation_timestamp) or 0) >= since for pod in there)
        return newer >= len(evicted) or (wanted is not None and len(there) >= wanted)


# --- Pace of evictions: successors first, and no pod takes another's room.


class EvictionPace(msgspec.Struct, frozen=True):
    """The pace of evictions in one plan."""

    successors: Successors
    setting_out: SettingOut

    def note_eviction(self, pod: Pod) -> None:
        """Record an eviction."""
        self.successors.note_eviction(pod)
        self.setting_out.take(pod)
