"""Eviction of gangs from draining nodes: all pods of a gang at once, on every node, if all pods may leave and have
destinations.

One decision evicts the whole gang, with the longest grace period of its pods that the policy allows, so the pods
work together until the end. While one pod may not leave or has no destination, no pod is evicted. The remaining pods
of a broken gang are evicted one by one, with or without a destination, because they can't work without the others.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Decision, Evict, Facts, Hold, Leaver, Reason, pod_ref
from reconciler.plan.capacity.demand import Gang, title_of
from reconciler.plan.drain.blockers import blocker
from reconciler.plan.drain.codes.blockers import (
    GangActedOn,
    GangLeavesAlready,
    GangNotTainted,
    GangPodUnplaced,
    GangSavesItsWork,
    GangStays,
)
from reconciler.plan.drain.codes.emptying import GangEvicted, GangRestEvicted, PodWaitsItsTurn
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gang_placement import Members, obstacle
from reconciler.plan.drain.graceful_eviction import EvictionPace, grace_of, longest_grace, notice_precondition, saving
from reconciler.plan.nodes.eviction import Remaining


class GangsLeaving:
    """Decisions about gangs. Uses up budgets before other pods do. Mutable."""

    def __init__(self, context: DrainContext, members: Members, remaining: Remaining, pacing: EvictionPace) -> None:
        self._context, self._members = context, members
        self._remaining, self._pacing = remaining, pacing
        self._emptied_nodes = context.draining
        self._decided: dict[str, Decision] = {}
        self.elsewhere: list[Decision] = []  # decisions about pods on nodes that are not draining

    def of(self, pod: Pod) -> Decision | None:
        """Decision about a gang pod on a draining node. An eviction covers the whole gang."""
        return self._decided.get(pod.metadata.uid)

    def decide(self, homes: Mapping[str, str], waits: AbstractSet[str]) -> None:
        """`homes`: destinations by pod uid; `waits`: nodes whose pods are not evicted yet."""
        for gang in sorted(self._members.on_their_way):
            rest = self._members.rest.get(gang)
            if rest:
                self._decided |= self._held(gang, Reason(GangLeavesAlready()))
                for pod in rest:
                    self._note(pod, self._rest(gang, pod, homes))
            else:
                self._decided |= self._whole(gang, homes, waits)

    def _saving(self, gang: Gang) -> bool:
        """Whether pods of the gang save their work. All pods get their notice at once, as if they ran on one node."""
        since = min((seen for seen, _ in self._emptied(gang)), key=lambda each: each.draining_since or 0).draining
        found = []
        for pod in self._members.of[gang]:
            drain_node = msgspec.structs.replace(self._context.by_name[pod.node], draining=since)
            if (decision := saving(self._context, drain_node, pod)) is not None:
                found.append((pod, decision))
        if found:
            self._decided |= self._held(gang, Reason(GangSavesItsWork()))
        for pod, decision in found:
            self._note(pod, decision)
        return bool(found)

    def _note(self, pod: Pod, decision: Decision | None) -> None:
        if decision is not None and pod.node in self._emptied_nodes:
            self._decided[pod.metadata.uid] = decision
        elif decision is not None:
            self.elsewhere.append(decision)

    def _rest(self, gang: Gang, pod: Pod, homes: Mapping[str, str]) -> Decision | None:
        drain_node = self._context.by_name.get(pod.node)
        if drain_node is None or self._context.is_claimed(pod_ref(pod)):
            return None
        if found := blocker(self._context, self._remaining, drain_node, pod):
            return self._context.act_on(pod, drain_node, Hold(), found)
        self._remaining.take(pod)
        self._pacing.setting_out.take(pod)
        home, title = homes.get(pod.metadata.uid, ""), title_of(gang)
        act = Evict(grace_seconds=grace_of(drain_node, pod), destination=home, gang=title)
        reason = drain_node.reason(GangRestEvicted(gang=title, pod=pod_ref(pod), node=drain_node.name))
        return self._context.act_on(pod, drain_node, act, reason)

    def _whole(self, gang: Gang, homes: Mapping[str, str], waits: AbstractSet[str]) -> dict[str, Decision]:
        context, pods = self._context, self._members.of[gang]
        emptied = self._emptied(gang)
        if any(drain_node.name in waits for drain_node, _ in emptied):
            return self._held(gang, Reason(GangNotTainted()))
        if any(context.is_claimed(pod_ref(pod)) for pod in pods):
            return self._held(gang, Reason(GangActedOn()))
        trial = self._remaining.copy()
        if found := obstacle(context, self._members, gang, trial):
            return {
                pod.metadata.uid: context.act_on(pod, drain_node, Hold(), found.to(drain_node, pod))
                for drain_node, pod in emptied
            }
        lost = next((pod for pod in pods if pod.metadata.uid not in homes), None)
        if lost is not None:
            return self._held(gang, Reason(GangPodUnplaced(pod=pod_ref(lost))))
        if late := self._why_one_waits(pods):
            return self._held(gang, late)
        if not self._pacing.setting_out.may_together(pods):
            return self._hold_waiting(emptied)
        for pod in pods:
            self._remaining.take(pod)
            self._pacing.note_eviction(pod)
        if self._saving(gang):
            return {}
        decision = self._together(gang, emptied[0], homes)
        return {pod.metadata.uid: decision for _, pod in emptied}

    def _hold_waiting(self, emptied: Sequence[tuple[DrainNode, Pod]]) -> dict[str, Decision]:
        others = self._pacing.setting_out.count
        return {
            pod.metadata.uid: self._hold(
                drain_node, pod, PodWaitsItsTurn(pod=pod_ref(pod), node=drain_node.name, others=others)
            )
            for drain_node, pod in emptied
        }

    def _hold(self, drain_node: DrainNode, pod: Pod, facts: Facts) -> Decision:
        return self._context.act_on(pod, drain_node, Hold(), drain_node.reason(facts))

    def _why_one_waits(self, pods: Sequence[Pod]) -> Reason | None:
        """Why a pod of the gang waits for successors of evicted pods of its workload. Pods that were evicted before do
        not wait.
        """
        new = [pod for pod in pods if pod.metadata.uid not in self._context.evicted_uids]
        reasons = (self._pacing.successors.why_not(self._context.by_name[pod.node], pod) for pod in new)
        return next((each for each in reasons if each is not None), None)

    def _together(self, gang: Gang, first: tuple[DrainNode, Pod], homes: Mapping[str, str]) -> Decision:
        drain_node, subject = first
        pods = self._members.of[gang]
        graces = [(pod, longest_grace(self._context.by_name[pod.node], pods)) for pod in pods]
        home = {pod.metadata.uid: homes[pod.metadata.uid] for pod in pods}
        others = tuple(
            Leaver(pod_ref(pod), seconds, home[pod.metadata.uid]) for pod, seconds in graces if pod is not subject
        )
        facts = GangEvicted(
            node=drain_node.name,
            pod=pod_ref(subject),
            pods=len(pods),
            gang=title_of(gang),
            homes=tuple(sorted(set(home.values()))),
        )
        act = Evict(
            grace_seconds=longest_grace(drain_node, pods),
            others=others,
            presumes=notice_precondition(subject),
            destination=home[subject.metadata.uid],
            gang=title_of(gang),
        )
        return self._context.act_on(subject, drain_node, act, drain_node.reason(facts))

    def _emptied(self, gang: Gang) -> list[tuple[DrainNode, Pod]]:
        """Pods of the gang on draining nodes."""
        nodes = self._emptied_nodes
        return [(nodes[pod.node], pod) for pod in self._members.of[gang] if pod.node in nodes]

    def _held(self, gang: Gang, cause: Reason) -> dict[str, Decision]:
        decisions = {}
        for drain_node, pod in self._emptied(gang):
            facts = GangStays(pod=pod_ref(pod), node=drain_node.name, gang=title_of(gang), why=cause)
            decisions[pod.metadata.uid] = self._hold(drain_node, pod, facts)
        return decisions


def evicted_uids(decision: Decision) -> frozenset[str]:
    """Uids of the pods that the decision evicts."""
    return frozenset(ref.uid for ref in decision.refs if isinstance(decision.act, Evict))
