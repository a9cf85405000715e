"""One pod of a workload after the other, where what is seen is old: the next once somebody came after the last.

Evictions are safe on any view as far as PodDisruptionBudgets go, since the API server weighs them itself. But on a view
that nobody has confirmed for a while a workload may look better than it is: those who were to come after its evicted
pods may hang. Then one of its pods is asked at a time, and only when for each that was evicted lately another one was
seen, made since, or when it has as many pods again as it wants.
"""

from functools import cached_property

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import moment
from reconciler.model.plan.action import Ref
from reconciler.model.plan.drain_memory import Evicted
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.drain.codes.emptying import PodWaitsForAnother, SuccessorUnseen
from reconciler.plan.drain.context import DrainContext, DrainNode, ref_of_evicted
from reconciler.plan.recent_evictions import OBSERVED_KINDS, owner_of, wanted_by


class Successors:
    """Owner of which workloads had a pod asked in this plan, where it matters."""

    def __init__(self, context: DrainContext) -> None:
        self._context = context
        self._old = context.inputs.observed.quiet_among(*OBSERVED_KINDS)
        self._refs: dict[str, Ref] = {}  # uid of an owner -> its pod

    def note_eviction(self, pod: Pod) -> None:
        """It is told, or asked to leave."""
        self._refs.setdefault(owner_of(pod), pod_ref(pod))

    def why_not(self, drain_node: DrainNode, pod: Pod) -> Reason | None:
        """Why it waits; nothing where what is seen is not old."""
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
        evicteds: dict[str, list[Evicted]] = {}
        for each in self._context.memory.evicted:
            evicteds.setdefault(each.owner, []).append(each)
        return evicteds

    @cached_property
    def _there(self) -> dict[str, list[Pod]]:
        """Pods by the uid of their owner."""
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
