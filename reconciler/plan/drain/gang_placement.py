"""Placement of nodes that drain together: no pod has a blocker, and all pods fit on other nodes at once, gangs as a
whole.

Gang pods on nodes that stay leave too, and need other room than their own: their room is used until the pods have
ended, and their successors must not wait for that. Karpenter would buy a node for a waiting successor, and then the
gang would be moved again. A group is first tried as a whole. If the group can't drain, its nodes are tried one after
the other, each beside the nodes before it that can drain.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.fleet.first_fit import Search
from reconciler.fleet.questions import place
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Reason, pod_ref
from reconciler.plan.capacity.demand import Gang, title_of
from reconciler.plan.drain.blockers import blocker, moves, stays
from reconciler.plan.drain.candidates import EligibilityContext, why_left_alone
from reconciler.plan.drain.codes.blockers import (
    GangBudget,
    GangPodNotDrained,
    GangPodObserved,
    GangStays,
    GangWithoutPlace,
    IsDestination,
    PodWithoutPlace,
)
from reconciler.plan.drain.codes.words import NodesWithoutRoom
from reconciler.plan.drain.context import DrainContext, DrainNode, ref_of_budget
from reconciler.plan.drain.node_eligibility import ExcludedNodes
from reconciler.plan.nodes.eviction import EvictionObstacle, Remaining

# --- Membership of gangs in one plan, gangs that are leaving, and the rest of broken gangs.
#
# A gang is leaving as soon as one node with a pod of the gang is draining. A gang is broken if some of its evicted pods
# have left and others still exist: a write failed, or the process was killed between two writes. The rest of a broken
# gang can't work and leaves as soon as possible. Evicted pods are remembered, so pods that were created since are not
# part of the rest.


class Members:
    """Running gang pods that are not terminating, by namespace and name."""

    def __init__(self, context: DrainContext) -> None:
        self.of: dict[Gang, tuple[Pod, ...]] = {}
        self.on: dict[str, tuple[Gang, ...]] = {}  # by name of the node
        self.rest: Mapping[Gang, tuple[Pod, ...]] = {}  # remaining pods of broken gangs
        self.on_their_way: frozenset[Gang] = frozenset()
        if context.draft.gangs.are_any:
            self._read(context)

    def _read(self, context: DrainContext) -> None:
        pods: defaultdict[Gang, list[Pod]] = defaultdict(list)
        on: defaultdict[str, set[Gang]] = defaultdict(set)
        for pod in context.inputs.observed.pods:
            gang = context.draft.gangs.of(pod) if pod.node and stays(pod) else None
            if gang is not None:
                pods[gang].append(pod)
                on[pod.node].add(gang)
        self.of = {gang: tuple(sorted(pods[gang], key=lambda pod: pod.title)) for gang in sorted(pods)}
        self.on = {node: tuple(sorted(gangs)) for node, gangs in on.items()}
        self.rest = self._left_behind(context)
        emptied = {gang for name in context.draining for gang in self.on.get(name, ())}
        self.on_their_way = frozenset(emptied | self.rest.keys())

    def first_on(self, node: str) -> tuple[Gang, Pod]:
        """First gang pod on a node, and its gang. The node must have one."""
        return next((gang, pod) for gang in self.on[node] for pod in self.of[gang] if pod.node == node)

    def _left_behind(self, context: DrainContext) -> dict[Gang, tuple[Pod, ...]]:
        """Rest of broken gangs. A gang may move more than once within the time that evictions are remembered. A pod
        that completed by itself did not leave: its eviction may never have happened.
        """
        rounds: defaultdict[tuple[str, Instant], set[str]] = defaultdict(set)
        asked_ones = {each.uid for each in context.memory.evicted if each.gang}
        pods = context.inputs.observed.pods if asked_ones else ()
        ended = {pod.metadata.uid for pod in pods if pod.is_finished and not pod.metadata.leaving} & asked_ones
        for each in context.memory.evicted:
            if each.uid not in ended:
                rounds[each.gang, each.first].add(each.uid)
        result = {}
        for gang, pods in self.of.items():
            there = {pod.metadata.uid for pod in pods}
            requested = [uids for (title, _), uids in rounds.items() if title == title_of(gang)]
            rest = {uid for uids in requested if not uids <= there for uid in uids & there}
            if rest:
                result[gang] = tuple(pod for pod in pods if pod.metadata.uid in rest)
        return result


# --- Blockers of gangs: a pod that may not leave or whose node is not drained, or the budgets of the pods.
#
# All pods of a gang leave at once, so PodDisruptionBudgets must allow all disruptions together. The API server, asked
# pod by pod with dry runs, would allow each alone.


class GangObstacle(msgspec.Struct, frozen=True):
    """A pod that keeps its whole gang."""

    gang: Gang
    node: str  # node of that pod
    cause: Reason
    keeps_its_node: bool = False  # the cause is already the reason of that node

    def to(self, drain_node: DrainNode, pod: Pod) -> Reason:
        """Reason for the node of another pod of the gang."""
        if self.keeps_its_node and drain_node.name == self.node:
            return self.cause
        gang = title_of(self.gang)
        return drain_node.reason(GangStays(pod=pod_ref(pod), node=drain_node.name, gang=gang, why=self.cause))


def obstacle(context: DrainContext, members: Members, gang: Gang, remaining: Remaining) -> GangObstacle | None:
    """The first blocker of a gang, or None if all pods may leave at once; then their budgets are taken."""
    return next(obstacles(context, members, gang, remaining), None)


def obstacles(context: DrainContext, members: Members, gang: Gang, remaining: Remaining) -> Iterator[GangObstacle]:
    """One blocker for each pod that keeps the gang. If there are none, the budgets of all pods are taken at the end."""
    pods, eligibility = members.of[gang], EligibilityContext(context)
    is_told_only = all(context.is_report_only(each) for pod in pods if (each := context.by_name.get(pod.node)))
    trial, are_free = remaining.copy(), True
    for pod in pods:
        drain_node = context.by_name.get(pod.node)
        if drain_node is None:
            cause = Reason(GangPodNotDrained(pod=pod_ref(pod), place=pod.node))
            found = GangObstacle(gang, pod.node, cause)
        elif not is_told_only and context.is_report_only(drain_node):
            cause = Reason(GangPodObserved(pod=pod_ref(pod), pool=drain_node.node.pool))
            found = GangObstacle(gang, pod.node, cause)
        elif left_alone := why_left_alone(eligibility, drain_node):
            found = GangObstacle(gang, pod.node, left_alone)
        elif reason := blocker(context, trial, drain_node, pod):
            reason = _of_all(context, drain_node, pod, pods) if _is_spent(remaining, trial, pod) else reason
            found = GangObstacle(gang, pod.node, reason, keeps_its_node=True)
        else:
            trial.take(pod)
            continue
        are_free = False
        yield found
    for pod in pods if are_free else ():
        remaining.take(pod)


def _is_spent(remaining: Remaining, trial: Remaining, pod: Pod) -> bool:
    """Whether other pods of the same gang use up the budget of the pod."""
    spent = {EvictionObstacle.BUDGET_TAKEN, EvictionObstacle.BUDGET_SPENT}
    return trial.why_not(pod) in spent and remaining.why_not(pod) is None


def _of_all(context: DrainContext, drain_node: DrainNode, pod: Pod, pods: Sequence[Pod]) -> Reason:
    (budget,) = context.budgets.of(pod)
    gang = title_of(context.draft.gangs.of(pod) or ("", ""))
    facts = GangBudget(
        pod=pod_ref(pod),
        node=drain_node.name,
        gang=gang,
        pods=len(pods),
        budget=ref_of_budget(budget),
        allowed=budget.status.disruptions_allowed,
    )
    return drain_node.reason(facts)


# --- Groups of nodes that drain together because gangs run on them, so that each gang moves once.
#
# A node is in one group at most: nodes that share a gang are in the same group. Gangs that are leaving already, and
# nodes that can't drain, form no groups: the other nodes drain without them. A group has at most as many nodes as may
# ever drain at once, and all have the same policy, because the windows of two policies may never be open at the same
# time. The other nodes stay, and drain later.


class GangNodes(msgspec.Struct, frozen=True, gc=False):
    """Nodes that drain together, in search order, and all gangs on them."""

    nodes: tuple[DrainNode, ...]
    gangs: tuple[Gang, ...]
    too_many: tuple[DrainNode, ...] = ()  # nodes beyond the number that may drain at once
    elsewhere: tuple[DrainNode, ...] = ()  # nodes with another policy

    @property
    def most(self) -> int:
        """Maximum number of nodes that may drain together."""
        return _most(self.nodes)


def crews_of(members: Members, order: Sequence[DrainNode]) -> dict[str, GangNodes]:
    """Groups by name of each node with a gang pod. A node whose gangs are all leaving already is a group of its own."""
    nodes_by_name: dict[str, GangNodes] = {}
    for at, drain_node in enumerate(order):
        if drain_node.name not in nodes_by_name and drain_node.name in members.on:
            crew = _crew(members, order[at:], drain_node)
            nodes_by_name |= dict.fromkeys([each.name for each in (*crew.nodes, *crew.too_many, *crew.elsewhere)], crew)
    return nodes_by_name


def _crew(members: Members, order: Sequence[DrainNode], first: DrainNode) -> GangNodes:
    gangs, before = _gangs(members, first), frozenset[Gang]()
    while gangs != before:
        before = gangs
        gangs = gangs.union(*(shared for each in order if (shared := _gangs(members, each)) & before))
    tied = tuple(each for each in order if each is first or _gangs(members, each) & gangs)
    nodes = tuple(each for each in tied if each.policy is first.policy)
    most = _most(nodes)
    moving = frozenset[Gang]().union(*(_gangs(members, each) for each in nodes[:most]))
    elsewhere = tuple(each for each in tied if each.policy is not first.policy)
    return GangNodes(nodes[:most], tuple(sorted(moving)), nodes[most:], elsewhere)


def part(members: Members, nodes: tuple[DrainNode, ...]) -> GangNodes:
    """A part of a group, with the gangs that run on these nodes."""
    return GangNodes(nodes, tuple(sorted(frozenset[Gang]().union(*(_gangs(members, each) for each in nodes)))))


def _most(nodes: Sequence[DrainNode]) -> int:
    """The lowest limit of the nodes' policies."""
    specs = [each.policy.spec for each in nodes]
    return max(1, min(min(each.max_drain_parallelism, each.max_scale_down_parallelism) for each in specs))


def _gangs(members: Members, drain_node: DrainNode) -> frozenset[Gang]:
    return frozenset(members.on.get(drain_node.name, ())) - members.on_their_way


class GangPlacement(msgspec.Struct, frozen=True):
    """Result of a search: the group can drain, or why its last node stays, or unknown."""

    homes: Mapping[str, str] = {}  # uid of a pod -> name of a node
    kept: Reason | None = None
    steps: int = 0
    pointer: str = ""
    is_spent: bool = False

    @property
    def goes(self) -> bool:
        return self.kept is None and not self.is_spent


class Crewing:
    """Searches for one group after the other, with the room and budgets that earlier groups left."""

    def __init__(self, context: DrainContext, members: Members, remaining: Remaining) -> None:
        self._context, self._members, self._remaining = context, members, remaining
        self._snapshot: Snapshot = context.fleet.snapshot

    def tried(self, crew: GangNodes, takers: set[int], search: Search) -> GangPlacement:
        """Whether all nodes of the group can drain, or else why the last one can't beside the others. Changes nothing.
        `takers`: rows that took pods in.
        """
        rows, last = self._snapshot.rows.row_of, crew.nodes[-1]
        if any(rows[each.name] in takers for each in crew.nodes):
            return GangPlacement(kept=last.reason(IsDestination(node=last.name)))
        if kept := self._blocked(crew, last):
            return GangPlacement(kept=kept)
        with self._snapshot.fork():
            return self._placed(crew, search)

    def go(self, crew: GangNodes, homes: Mapping[str, str]) -> dict[str, Pod]:
        """Remove the group from the fleet and take the budgets of its pods. Returns all pods that move, by uid."""
        snapshot, moving = self._snapshot, self._moving(crew)
        self._vacate(crew)
        for uid, pod in moving.items():
            snapshot.add(snapshot.classes.of(pod).anew, snapshot.rows.row_of[homes[uid]])
            self._remaining.take(pod)
        return moving

    def hinted(self, crew: GangNodes) -> Iterable[Pod]:
        """Pods whose previous destinations are tried first."""
        return self._moving(crew).values()

    def _moving(self, crew: GangNodes) -> dict[str, Pod]:
        """All pods that leave, by uid: the pods on the nodes, and all pods of their gangs, without pods that are moving
        already.
        """
        pods = [pod for each in crew.nodes for pod in self._pods_of(each)]
        pods += [pod for gang in crew.gangs for pod in self._members.of[gang]]
        return {pod.metadata.uid: pod for pod in pods}

    def _blocked(self, crew: GangNodes, last: DrainNode) -> Reason | None:
        """Blocker of the group, whatever room other nodes have."""
        trial = self._remaining.copy()
        for gang in crew.gangs:
            if found := obstacle(self._context, self._members, gang, trial):
                return found.to(last, self._of_gang(gang, last))
        of = self._context.draft.gangs.of
        others = ((each, pod) for each in crew.nodes for pod in self._pods_of(each) if of(pod) not in crew.gangs)
        found_others = (blocker(self._context, trial, each, pod) for each, pod in others)
        return next((reason for reason in found_others if reason is not None), None)

    def _vacate(self, crew: GangNodes) -> None:
        for each in sorted(crew.nodes, key=lambda each: each.name):
            self._snapshot.vacate(self._snapshot.rows.row_of[each.name])

    def _placed(self, crew: GangNodes, search: Search) -> GangPlacement:
        """Search for destinations. Call within a fork."""
        snapshot, moving = self._snapshot, self._moving(crew)
        self._vacate(crew)
        placement = place(snapshot, sorted(moving.values(), key=self._rank), search)
        if placement.not_evaluated:
            return GangPlacement(is_spent=True)
        if not placement.unplaced:
            return GangPlacement(placement.destinations, steps=placement.steps, pointer=placement.pointer)
        lost = next(uid for uid in moving if uid in placement.unplaced)
        takes = snapshot.rows.alive if search.allowed is None else snapshot.rows.alive & search.allowed
        ruled_out = ExcludedNodes(self._context).no_room(
            placement.unplaced[lost], takes, {each.name for each in crew.nodes}
        )
        return GangPlacement(kept=self._no_place(crew.nodes[-1], moving[lost], ruled_out), steps=placement.steps)

    def _pods_of(self, drain_node: DrainNode) -> list[Pod]:
        """Pods that would leave the node, without gangs that are leaving already."""
        there = self._snapshot.pods_of_row(self._snapshot.rows.row_of[drain_node.name])
        of, gone = self._context.draft.gangs.of, self._members.on_their_way
        return [pod for pod in there if moves(pod) and of(pod) not in gone]

    def _no_place(self, last: DrainNode, lost: Pod, ruled_out: NodesWithoutRoom) -> Reason:
        gang = self._context.draft.gangs.of(lost)
        if gang is None or gang in self._members.on_their_way:
            return last.reason(PodWithoutPlace(pod=pod_ref(lost), node=last.name, ruled_out=ruled_out))
        pod = self._of_gang(gang, last)
        facts = GangWithoutPlace(
            pod=pod_ref(pod), node=last.name, gang=title_of(gang), lost=pod_ref(lost), ruled_out=ruled_out
        )
        return last.reason(facts)

    def _of_gang(self, gang: Gang, drain_node: DrainNode) -> Pod:
        """A gang pod on the node, else any pod of the gang."""
        pods = self._members.of[gang]
        return next((pod for pod in pods if pod.node == drain_node.name), pods[0])

    def _rank(self, pod: Pod) -> tuple[object, str]:
        return self._snapshot.classes.of(pod).anew.rank, pod.title
