"""What is done on nodes that are being drained, each by itself: pods are asked to leave, and then the node goes.

A pod is asked only if it has a place, nothing keeps it, no pod that is on its way could take its place, and its
PodDisruptionBudget allows one more; its grace is what it asks for, and no longer than maxGracefulTerminationSeconds.
One that saves its work first draws on its budget from the moment it is told, ahead of all that were not. Pods of gangs
are seen to before all others, each gang as a whole. Pods of DaemonSets are asked when nothing else is left, unless they
tolerate the taint and would come again. A node is deleted once it was empty for a minute, and a most recent look finds
nothing on it that counts; or it stays, if its pool has come to lack nodes. On a node that is not ready, pods that stay
Terminating do not count: the kubelet that would end them is gone.

A node whose last eviction, or whose pods' time to save their work, is longer ago than a pod's longest grace and two
minutes is given back: its taint comes off, and it is left alone for a while. What was evicted is not called back. Pods
that were made after the drain had begun are no sign that it goes on: who tolerates the taint could make it last for
ever.
"""

from collections.abc import Iterator
from functools import cached_property

from reconciler.fleet.filters.taints import tolerated
from reconciler.model import names
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.stuck_pods import is_stuck, leaves_by, stuck_at
from reconciler.model.instant import Instant, later
from reconciler.model.plan.action import Delete, Evict, Hold, Preconditions, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.drain_memory import Emptied
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import node_ref, pod_ref
from reconciler.plan.containment import planning_for
from reconciler.plan.drain import marks
from reconciler.plan.drain.backoff.needed_again import NeededAgain
from reconciler.plan.drain.blockers import blocker, moves, stays
from reconciler.plan.drain.codes.blockers import PodWithoutPlace
from reconciler.plan.drain.codes.eligibility import GpusLent
from reconciler.plan.drain.codes.emptying import (
    DaemonPodEvicted,
    DrainedNodeDeleted,
    DrainMarkUnreadable,
    EmptiedNodeWaits,
    EvictedPodsStay,
    GivenBack,
    PodLeaves,
    PodWaitsItsTurn,
)
from reconciler.plan.drain.context import PATIENCE_MS, DrainContext, DrainNode
from reconciler.plan.drain.eviction.checkpoints import as_told, saving, told_of, why_evicted
from reconciler.plan.drain.eviction.concurrent import SettingOut
from reconciler.plan.drain.eviction.grace import grace_of
from reconciler.plan.drain.eviction.pace import Pacing
from reconciler.plan.drain.eviction.successors import Successors
from reconciler.plan.drain.gangs.eviction import GangsLeaving, asked_by
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.nodes.lost import why_lost
from reconciler.plan.drain.placement import Rehomed
from reconciler.plan.nodes.eviction import Remaining, stays_until
from reconciler.plan.nodes.ownership import opt_out

EMPTY_FOR_MS = 60_000


class Emptying:
    """Owner of what is left of budgets while one plan asks pods to leave, and of which nodes were found empty."""

    def __init__(self, site: DrainContext, rehomed: Rehomed, members: Members) -> None:
        self._site, self._rehomed = site, rehomed
        self._remaining = Remaining(site.budgets)
        self._pacing = Pacing(Successors(site), SettingOut(site, rehomed.on_their_way))
        self._gangs = GangsLeaving(site, members, self._remaining, self._pacing)
        self._needed = NeededAgain(site, rehomed)
        self._told: dict[str, Decision] = {}  # by uid, of pods that save their work, or had time to
        self._before = {(each.node, each.uid): each for each in site.memory.emptied}
        self.emptied: list[Emptied] = []
        self.wakes: list[Instant] = []  # when nodes are given up

    def decide(self, waits: frozenset[str]) -> Iterator[Decision]:
        """Of all nodes but those. What is decided of a whole gang is told once."""
        ours = [each for each in self._site.draining.values() if each.name not in waits and self._is_ours(each)]
        released = self._released(ours)
        in_hand = [each for each in ours if each.name not in released]
        self._gangs.decide(self._rehomed.homes, waits | released.keys())
        self._go_on(in_hand)
        told: set[Ref] = set()
        for each in (*released.values(), *self._of_nodes(in_hand), *self._gangs.elsewhere):
            if each.subject not in told:
                told.add(each.subject)
                yield each

    def _released(self, ours: list[DrainNode]) -> dict[str, Decision]:
        """Nodes that opted out since their drain began, or that nobody can empty, by name: the taint comes off, and
        nothing else is evicted."""
        found = {}
        for seen in ours:
            opted_out, mark = opt_out(seen.node, self._site.now), seen.draining
            reason = opted_out.reason if opted_out is not None else why_lost(self._site, seen)
            if reason is not None and mark is not None:
                found[seen.name] = self._site.act(seen, mark.off, reason)
        return found

    def _of_nodes(self, in_hand: list[DrainNode]) -> Iterator[Decision]:
        for seen in in_hand:
            with planning_for(seen.pool):
                yield from self._of_node(seen)

    def _of_node(self, seen: DrainNode) -> Iterator[Decision]:
        mark = seen.draining
        if mark is not None and mark.since is None:
            facts = DrainMarkUnreadable(key=mark.key, node=seen.name, value=mark.value)
            yield self._site.act(seen, mark.off, seen.reason(facts))
        elif pods := self._counting(seen):
            yield from self._busy(seen, pods)
        else:
            yield from self._empty(seen)

    def _is_ours(self, seen: DrainNode) -> bool:
        return not self._site.is_claimed(node_ref(seen.node))

    def _counting(self, seen: DrainNode) -> list[Pod]:
        """Pods that are waited for. Those that nobody will end are not; Karpenter does not wait for them either."""
        counting = [pod for pod in self._site.fleet.pods_on(seen.name) if pod.counts]
        if seen.is_ready:
            return counting
        longest = seen.longest_grace_seconds
        self.wakes += [at for pod in counting if (at := stuck_at(pod, seen.node, longest)) is not None]
        return [pod for pod in counting if not is_stuck(pod, seen.node, self._site.now, longest)]

    def _go_on(self, in_hand: list[DrainNode]) -> None:
        """Those that were told before draw on their budgets first."""
        told = {pod.node for pod in self._site.fleet.occupancy.told}
        for seen in (each for each in in_hand if each.name in told):
            for pod in self._counting(seen):
                if moves(pod) and not self._gangs.of(pod) and told_of(self._site, seen, pod) is not None:
                    self._told[pod.metadata.uid] = self._asked(seen, pod)

    def _busy(self, seen: DrainNode, pods: list[Pod]) -> Iterator[Decision]:
        staying = sorted(filter(stays, pods), key=self._pacing.setting_out.rank)
        free = [pod for pod in staying if not self._site.is_claimed(pod_ref(pod))]
        asked = [self._decided(pod) or self._asked(seen, pod) for pod in free]
        holds = [each for each in asked if isinstance(each.act, Hold)]
        ends = self._ends(seen, pods)
        self.wakes.append(ends)
        goes_on = any(not self._site.asked_before.issuperset(asked_by(each)) for each in asked)
        goes_on = goes_on or any(isinstance(each.reason.facts, PodWaitsItsTurn) for each in holds)
        # Whom we would ask may be held by a guard, plan after plan: once more as long, and no longer.
        gives_up_at = later(ends, patience_ms(seen))
        self.wakes.append(gives_up_at)
        if ends <= self._site.now and not (goes_on and self._site.now < gives_up_at):
            yield self._given_back(seen, holds)
            return
        yield from asked
        if not asked:
            yield self._site.act(seen, Hold(ends), seen.reason(PodLeaves(pods=len(pods), node=seen.name)))

    def _decided(self, pod: Pod) -> Decision | None:
        return self._gangs.of(pod) or self._told.get(pod.metadata.uid)

    def _asked(self, seen: DrainNode, pod: Pod) -> Decision:
        site = self._site
        if found := blocker(site, self._remaining, seen, pod):
            return site.act_on(pod, seen, Hold(), found)
        home = self._rehomed.homes.get(pod.metadata.uid)
        if home is None:
            ruled_out = self._rehomed.unplaced.get(pod.metadata.uid)
            unplaced = PodWithoutPlace(pod=pod_ref(pod), node=seen.name, ruled_out=ruled_out)
            return site.act_on(pod, seen, Hold(), seen.reason(unplaced))
        if waits := self._pacing.successors.why_not(seen, pod):
            return site.act_on(pod, seen, Hold(), waits)
        if not self._pacing.setting_out.may(pod):
            others = self._pacing.setting_out.count
            turn = PodWaitsItsTurn(pod=pod_ref(pod), node=seen.name, others=others)
            return site.act_on(pod, seen, Hold(), seen.reason(turn))
        self._remaining.take(pod)
        self._pacing.asked(pod)
        saves = saving(site, seen, pod)
        evict = Evict(grace_seconds=grace_of(seen, pod), presumes=as_told(pod), destination=home)
        return saves or site.act_on(pod, seen, evict, why_evicted(site, seen, pod, home))

    def _ends(self, seen: DrainNode, pods: list[Pod]) -> Instant:
        """When it is given up, by the last sign that it goes on. To tell pods again and again is none."""
        signs = [seen.draining_since or self._site.now, *self._evicted_at.get(seen.name, ())]
        # A grace that is longer than the policy allows is no sign that the drain goes on.
        leaving = (pod for pod in pods if pod.metadata.leaving and not marks.came_late(pod, seen.draining))
        signs += [leaves_by(pod, seen.longest_grace_seconds) or Instant(0) for pod in leaving]
        ends = max(signs) + patience_ms(seen)
        told = [each for pod in pods if (each := told_of(self._site, seen, pod)) is not None]
        saved = [each.evict_at + patience_ms(seen) for each in told if each.asked_at <= ends]
        return Instant(max([ends, *saved]))

    @cached_property
    def _evicted_at(self) -> dict[str, list[Instant]]:
        found: dict[str, list[Instant]] = {}
        for each in self._site.memory.evicted:
            if not each.is_late:
                found.setdefault(each.node, []).append(each.first)
        return found

    def _given_back(self, seen: DrainNode, holds: list[Decision]) -> Decision:
        mark = seen.draining
        if mark is None:
            raise TypeError("only what is drained is given back")
        why = holds[0].reason if holds else Reason(EvictedPodsStay())
        facts = GivenBack(node=seen.name, minutes=patience_ms(seen) // 60_000, why=why)
        return self._site.act(seen, mark.off, seen.reason(facts))

    def _empty(self, seen: DrainNode) -> Iterator[Decision]:
        """Nothing that counts is left."""
        site, node, mark = self._site, seen.node, seen.draining
        if mark is not None and (kept := self._needed.why_kept(seen)):
            yield site.act(seen, mark.off, kept)
            return
        known = self._before.get((seen.name, node.metadata.uid)) or Emptied(seen.name, node.metadata.uid, site.now)
        self.emptied.append(known)
        yield from self._daemons(seen)
        at = later(known.since, EMPTY_FOR_MS)
        if at > site.now:
            yield site.act(seen, Hold(at), seen.reason(EmptiedNodeWaits(node=seen.name, time=at)))
        elif gpus := site.fleet.lent.get(seen.name, 0):
            yield site.act(seen, Hold(), seen.reason(GpusLent(gpus=gpus, node=seen.name)))
        else:
            longest = seen.longest_grace_seconds
            version = node.metadata.resource_version
            presumes = Preconditions(resource_version=version, empty=True, longest_grace_seconds=longest)
            yield site.act(seen, Delete(presumes=presumes), seen.reason(DrainedNodeDeleted(node=seen.name)))

    def _daemons(self, seen: DrainNode) -> Iterator[Decision]:
        for pod in self._site.fleet.pods_on(seen.name):
            if pod.is_finished or pod.metadata.leaving or not pod.is_daemon:
                continue
            is_kept = stays_until(pod) > self._site.now or _says_that_it_stays(pod)
            if is_kept or tolerated(_TAINT, pod.spec.tolerations) or self._remaining.why_not(pod) is not None:
                continue
            if not self._site.is_claimed(pod_ref(pod)):
                self._remaining.take(pod)
                reason = seen.reason(DaemonPodEvicted(pod=pod_ref(pod), node=seen.name))
                yield self._site.act_on(pod, seen, Evict(grace_seconds=grace_of(seen, pod)), reason)


def _says_that_it_stays(daemon: Pod) -> bool:
    """A DaemonSet pod, which then goes with its node."""
    said = daemon.metadata.annotations
    return said.safe_to_evict == "false" or daemon.runs_to_completion or said.enable_ds_eviction == "false"


_TAINT = NodeTaint(names.DRAINING, marks.HARD)


def patience_ms(seen: DrainNode) -> int:
    """For how long nothing may go on."""
    return 1_000 * seen.longest_grace_seconds + PATIENCE_MS
