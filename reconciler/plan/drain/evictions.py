"""Actions on draining nodes, node by node: evict the pods, then delete the node.

A pod is evicted only if the pod has a destination and no blocker, no pod that was evicted earlier could take the
destination, and its PodDisruptionBudget allows one more disruption. The grace period is that of the pod, at most
maxGracefulTerminationSeconds. A pod that saves its work first uses its budget from the time of the notice, before
all pods without a notice. Gangs come before all other pods, each gang as a whole. DaemonSet pods are evicted when no
other pods are left, unless they tolerate the taint and would come back. A node is deleted when the node was empty
for a minute and a fresh read finds no workload pod there; a node stays if its pool lacks nodes by then. On an
unready node, pods that stay Terminating do not count, because their kubelet is gone.

A drain is cancelled if the last eviction, or the end of the last notice, is longer ago than the longest grace period
plus two minutes: the taint is removed, and the node backs off. Evictions are not undone. Pods that were created
after the drain began do not count as progress: pods that tolerate the taint could prolong the drain for ever.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from reconciler.fleet.filters.node import tolerated
from reconciler.model import names
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.pod import Pod, is_stuck, leaves_by, stuck_at
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import (
    Decision,
    Delete,
    Evict,
    Facts,
    Hold,
    Preconditions,
    Reason,
    Ref,
    pod_ref,
)
from reconciler.model.plan.drain_memory import Emptied
from reconciler.model.policy.scaling import bounded_size
from reconciler.plan.containment import planning_for
from reconciler.plan.drain import marks
from reconciler.plan.drain.blockers import blocker, moves, stays, why_lost
from reconciler.plan.drain.codes.blockers import ANNOTATION_BLOCKERS, GpusLent, PodWithoutPlace
from reconciler.plan.drain.codes.emptying import (
    BelowClusterMin,
    BelowMinSize,
    DaemonPodEvicted,
    DrainedNodeDeleted,
    DrainedNodeNeeded,
    DrainMarkUnreadable,
    EmptiedNodeWaits,
    EvictedPodsStay,
    EvictedPodWithoutPlace,
    GivenBack,
    PodLeaves,
    PodsWaitForCapacity,
    PodWaitsItsTurn,
    WarmNodesLacking,
)
from reconciler.plan.drain.context import PATIENCE_MS, DrainContext, DrainNode, ref_of_evicted
from reconciler.plan.drain.gang_eviction import GangsLeaving, evicted_uids
from reconciler.plan.drain.gang_placement import Members
from reconciler.plan.drain.graceful_eviction import (
    EvictionPace,
    SettingOut,
    Successors,
    grace_of,
    notice_of,
    notice_precondition,
    saving,
    why_evicted,
)
from reconciler.plan.drain.placement import Rehomed
from reconciler.plan.guards.tally import ClusterMin
from reconciler.plan.nodes.eviction import stays_until
from reconciler.plan.nodes.ownership import opt_out
from reconciler.plan.recent_evictions import unreplaced
from reconciler.plan.windows import provisioners_now

EMPTY_FOR_MS = 60_000


class DrainEvictions:
    """Remaining budgets while pods are evicted in one plan, and the nodes found empty. Mutable."""

    def __init__(self, context: DrainContext, rehomed: Rehomed, members: Members) -> None:
        self._context, self._rehomed = context, rehomed
        self._remaining = context.remaining_budgets()
        self._pacing = EvictionPace(Successors(context), SettingOut(context, rehomed.on_their_way))
        self._gangs = GangsLeaving(context, members, self._remaining, self._pacing)
        self._needed = NeededAgain(context, rehomed)
        self._decisions: dict[str, Decision] = {}  # by uid, for pods that had a notice
        self._before = {(each.node, each.uid): each for each in context.memory.emptied}
        self.emptied: list[Emptied] = []
        self.wakes: list[Instant] = []  # when drains are cancelled

    def decide(self, waits: frozenset[str]) -> Iterator[Decision]:
        """Decisions about all draining nodes except `waits`. A decision about a whole gang is returned once."""
        ours = [each for each in self._context.draining.values() if each.name not in waits and self._is_ours(each)]
        released = self._released(ours)
        in_hand = [each for each in ours if each.name not in released]
        self._gangs.decide(self._rehomed.homes, waits | released.keys())
        self._go_on(in_hand)
        refs: set[Ref] = set()
        for each in (*released.values(), *self._of_nodes(in_hand), *self._gangs.elsewhere):
            if each.subject not in refs:
                refs.add(each.subject)
                yield each

    def _released(self, ours: list[DrainNode]) -> dict[str, Decision]:
        """Nodes that opted out since their drain began, or that nobody can empty, by name. The taint is removed, and no
        further pod is evicted.
        """
        decisions = {}
        for drain_node in ours:
            opted_out, mark = opt_out(drain_node.node, self._context.now), drain_node.draining
            reason = opted_out.reason if opted_out is not None else why_lost(self._context, drain_node)
            if reason is not None and mark is not None:
                decisions[drain_node.name] = self._context.act(drain_node, mark.off, reason)
        return decisions

    def _of_nodes(self, in_hand: list[DrainNode]) -> Iterator[Decision]:
        for drain_node in in_hand:
            with planning_for(drain_node.pool):
                yield from self._of_node(drain_node)

    def _of_node(self, drain_node: DrainNode) -> Iterator[Decision]:
        mark = drain_node.draining
        if mark is not None and mark.since is None:
            facts = DrainMarkUnreadable(key=mark.key, node=drain_node.name, value=mark.value)
            yield self._context.act(drain_node, mark.off, drain_node.reason(facts))
        elif pods := self._counting(drain_node):
            yield from self._busy(drain_node, pods)
        else:
            yield from self._empty(drain_node)

    def _is_ours(self, drain_node: DrainNode) -> bool:
        return not self._context.is_claimed(drain_node.ref)

    def _counting(self, drain_node: DrainNode) -> list[Pod]:
        """Pods that the drain waits for. Pods that nobody can terminate are left out; Karpenter does not wait for them
        either.
        """
        counting = [pod for pod in self._context.fleet.pods_on(drain_node.name) if pod.counts]
        if drain_node.is_ready:
            return counting
        longest = drain_node.longest_grace_seconds
        self.wakes += [at for pod in counting if (at := stuck_at(pod, drain_node.node, longest)) is not None]
        return [pod for pod in counting if not is_stuck(pod, drain_node.node, self._context.now, longest)]

    def _go_on(self, in_hand: list[DrainNode]) -> None:
        """Evict pods with a notice first, so that they use their budgets first."""
        notified = {pod.node for pod in self._context.fleet.occupancy.notified_pods}
        for drain_node in (each for each in in_hand if each.name in notified):
            for pod in self._counting(drain_node):
                if moves(pod) and not self._gangs.of(pod) and notice_of(self._context, drain_node, pod) is not None:
                    self._decisions[pod.metadata.uid] = self._evict(drain_node, pod)

    def _busy(self, drain_node: DrainNode, pods: list[Pod]) -> Iterator[Decision]:
        staying = sorted(filter(stays, pods), key=self._pacing.setting_out.rank)
        free = [pod for pod in staying if not self._context.is_claimed(pod_ref(pod))]
        decisions = [self._decided(pod) or self._evict(drain_node, pod) for pod in free]
        holds = [each for each in decisions if isinstance(each.act, Hold)]
        ends = self._ends(drain_node, pods)
        self.wakes.append(ends)
        goes_on = any(not self._context.evicted_uids.issuperset(evicted_uids(each)) for each in decisions)
        goes_on = goes_on or any(isinstance(each.reason.facts, PodWaitsItsTurn) for each in holds)
        # A guard may hold the evictions in plan after plan, so the drain gets twice the time, and no more.
        gives_up_at = later(ends, patience_ms(drain_node))
        self.wakes.append(gives_up_at)
        if ends <= self._context.now and not (goes_on and self._context.now < gives_up_at):
            yield self._given_back(drain_node, holds)
            return
        yield from decisions
        if not decisions:
            yield self._context.act(
                drain_node, Hold(ends), drain_node.reason(PodLeaves(pods=len(pods), node=drain_node.name))
            )

    def _decided(self, pod: Pod) -> Decision | None:
        return self._gangs.of(pod) or self._decisions.get(pod.metadata.uid)

    def _evict(self, drain_node: DrainNode, pod: Pod) -> Decision:
        context = self._context
        if reason := blocker(context, self._remaining, drain_node, pod):
            return context.act_on(pod, drain_node, Hold(), reason)
        home = self._rehomed.homes.get(pod.metadata.uid)
        if home is None:
            ruled_out = self._rehomed.unplaced.get(pod.metadata.uid)
            unplaced = PodWithoutPlace(pod=pod_ref(pod), node=drain_node.name, ruled_out=ruled_out)
            return context.act_on(pod, drain_node, Hold(), drain_node.reason(unplaced))
        if waits := self._pacing.successors.why_not(drain_node, pod):
            return context.act_on(pod, drain_node, Hold(), waits)
        if not self._pacing.setting_out.may(pod):
            others = self._pacing.setting_out.count
            pod_waits_its_turn = PodWaitsItsTurn(pod=pod_ref(pod), node=drain_node.name, others=others)
            return context.act_on(pod, drain_node, Hold(), drain_node.reason(pod_waits_its_turn))
        self._remaining.take(pod)
        self._pacing.note_eviction(pod)
        saves = saving(context, drain_node, pod)
        evict = Evict(grace_seconds=grace_of(drain_node, pod), presumes=notice_precondition(pod), destination=home)
        return saves or context.act_on(pod, drain_node, evict, why_evicted(context, drain_node, pod, home))

    def _ends(self, drain_node: DrainNode, pods: list[Pod]) -> Instant:
        """When the drain is cancelled, counted from the last progress. Repeated notices are no progress."""
        signs = [drain_node.draining_since or self._context.now, *self._evicted_at.get(drain_node.name, ())]
        # A grace period longer than the policy allows does not prolong the drain.
        leaving = (pod for pod in pods if pod.metadata.leaving and not marks.came_late(pod, drain_node.draining))
        signs += [leaves_by(pod, drain_node.longest_grace_seconds) or Instant(0) for pod in leaving]
        ends = max(signs) + patience_ms(drain_node)
        notices = [each for pod in pods if (each := notice_of(self._context, drain_node, pod)) is not None]
        saved = [each.evict_at + patience_ms(drain_node) for each in notices if each.notified_at <= ends]
        return Instant(max([ends, *saved]))

    @cached_property
    def _evicted_at(self) -> dict[str, list[Instant]]:
        instants: dict[str, list[Instant]] = {}
        for each in self._context.memory.evicted:
            if not each.is_late:
                instants.setdefault(each.node, []).append(each.first)
        return instants

    def _given_back(self, drain_node: DrainNode, holds: list[Decision]) -> Decision:
        mark = drain_node.draining
        if mark is None:
            raise TypeError("the node is not draining")
        why = holds[0].reason if holds else Reason(EvictedPodsStay())
        facts = GivenBack(node=drain_node.name, minutes=patience_ms(drain_node) // 60_000, why=why)
        return self._context.act(drain_node, mark.off, drain_node.reason(facts))

    def _empty(self, drain_node: DrainNode) -> Iterator[Decision]:
        """Decisions about a node without workload pods."""
        context, node, mark = self._context, drain_node.node, drain_node.draining
        if mark is not None and (kept := self._needed.why_kept(drain_node)):
            yield context.act(drain_node, mark.off, kept)
            return
        known = self._before.get((drain_node.name, node.metadata.uid)) or Emptied(
            drain_node.name, node.metadata.uid, context.now
        )
        self.emptied.append(known)
        yield from self._daemons(drain_node)
        at = later(known.since, EMPTY_FOR_MS)
        if at > context.now:
            yield context.act(drain_node, Hold(at), drain_node.reason(EmptiedNodeWaits(node=drain_node.name, time=at)))
        elif gpus := context.fleet.lent.get(drain_node.name, 0):
            yield context.act(drain_node, Hold(), drain_node.reason(GpusLent(gpus=gpus, node=drain_node.name)))
        else:
            longest = drain_node.longest_grace_seconds
            version = node.metadata.resource_version
            presumes = Preconditions(resource_version=version, empty=True, longest_grace_seconds=longest)
            yield context.act(
                drain_node, Delete(presumes=presumes), drain_node.reason(DrainedNodeDeleted(node=drain_node.name))
            )

    def _daemons(self, drain_node: DrainNode) -> Iterator[Decision]:
        for pod in self._context.fleet.pods_on(drain_node.name):
            if pod.is_finished or pod.metadata.leaving or not pod.is_daemon:
                continue
            is_kept = stays_until(pod) > self._context.now or _says_that_it_stays(pod)
            if is_kept or tolerated(_TAINT, pod.spec.tolerations) or self._remaining.why_not(pod) is not None:
                continue
            if not self._context.is_claimed(pod_ref(pod)):
                self._remaining.take(pod)
                reason = drain_node.reason(DaemonPodEvicted(pod=pod_ref(pod), node=drain_node.name))
                yield self._context.act_on(pod, drain_node, Evict(grace_seconds=grace_of(drain_node, pod)), reason)


def _says_that_it_stays(daemon: Pod) -> bool:
    """Whether a DaemonSet pod opts out of eviction and so stays until its node is deleted."""
    opts_out = daemon.metadata.annotations.enable_ds_eviction == "false"
    return opts_out or any(code.keeps(daemon) for code in ANNOTATION_BLOCKERS)


_TAINT = NodeTaint(names.DRAINING, marks.HARD)


def patience_ms(drain_node: DrainNode) -> int:
    """How long a drain may make no progress."""
    return 1_000 * drain_node.longest_grace_seconds + PATIENCE_MS


# --- Drained nodes that are needed again, because their pool or the cluster lacks nodes by now.
#
# While a node drains, demand may arrive, or other nodes may be removed. Deleting the node and buying another would cost
# time and money, so the node stays if it is ready, and scaling handles it as an empty node again. A node also stays for
# a recently evicted pod of its pool that was not recreated yet and fits on no other node.


class NeededAgain:
    """What each pool lacks in one plan. Mutable."""

    def __init__(self, context: DrainContext, rehomed: Rehomed) -> None:
        self._cluster_min = ClusterMin(context.inputs, context.draft)
        self._lacks: dict[str, tuple[int, Facts]] = {}  # by pool: number of missing nodes, and the reason
        for wish in provisioners_now(context.inputs):
            if not wish.spec.suspend:
                staying = sum(context.fleet.pool(wish.spec.pool_name).staying.values())
                lack = bounded_size(wish.spec, staying).lack
                why = BelowMinSize(min_size=lack.value, staying=staying, field=lack.field)
                self._lack(wish.spec.pool_name, lack.nodes, why)
        capacity = context.draft.capacity
        for wanted, facts in (
            (capacity.lacking("demand"), PodsWaitForCapacity()),
            (capacity.lacking("warmNodes"), WarmNodesLacking()),
        ):
            for (pool, _), nodes in Counter((each.pool, each.provisioner) for each in wanted).items():
                self._lack(pool, nodes, facts)
        for evicted, _ in unreplaced(context.inputs) if rehomed.evicted_without_place else ():
            if evicted.uid in rehomed.evicted_without_place:
                self._lack(evicted.pool, 1, EvictedPodWithoutPlace(pod=ref_of_evicted(evicted)))

    def _lack(self, pool: str, nodes: int, why: Facts) -> None:
        if nodes > (self._lacks[pool][0] if pool in self._lacks else 0):
            self._lacks[pool] = nodes, why

    def why_kept(self, drain_node: DrainNode) -> Reason | None:
        """Why the node stays. Each kept node reduces what its pool lacks."""
        if not drain_node.is_ready:
            return None
        if lack := self._cluster_min.why_kept(drain_node.node):
            self._cluster_min.give(drain_node.node)
            return _needed(drain_node, None, BelowClusterMin(left=lack.left, resource=lack.resource, least=lack.least))
        if drain_node.pool not in self._lacks:
            return None
        nodes, why = self._lacks[drain_node.pool]
        if not nodes:
            return None
        self._lacks[drain_node.pool] = nodes - 1, why
        return _needed(drain_node, nodes, why)


def _needed(drain_node: DrainNode, nodes: int | None, why: Facts) -> Reason:
    return drain_node.reason(
        DrainedNodeNeeded(node=drain_node.name, pool=drain_node.pool, lacks=nodes, why=Reason(why))
    )
