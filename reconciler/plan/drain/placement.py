"""Simulation of drains: which nodes can drain together, because all their pods fit on nodes that stay.

Theory of operation. The simulation runs in a fork of the what-if fleet, which is undone as a whole. First all
leaving pods are removed. Then destinations are searched in this order: for pods whose gate is removed in this plan,
on the nodes that were found for them; for pods on draining nodes; for recently evicted pods that were not recreated
yet, at most as many as their owner lacks, and for waiting successors of evicted pods; for all other waiting pods. If
a pod of a draining node or an evicted pod has no destination, there are no new candidates: running drains come
first.

Then each node is tried in a fork of its own. Its pods, hardest to place first, go to their previous destinations,
else to a node that stays in any case, fullest first: a node that is not tried, a node that a pod keeps, or a node
that took pods already. Only if none of these has room, the pods go to a node that could drain itself, the last in
order first, and that node then stays. No pod goes to a former candidate that is tried again or was found to drain,
or to a node that leaves, is not ready or is empty: moving pods to an empty node saves no node. A node that took pods
is not drained itself. Names decide only between equal nodes, so the number of drained nodes does not depend on names
(as long as no pod has rules about other pods, and hints are empty).

If all pods of a node have destinations, the result stays, and their PodDisruptionBudgets are reduced for later
nodes; else the fork is undone. A budget that allows some but not all pods of a node at once is no obstacle: the pods
leave one after the other. Nodes that share a gang are tried together, with all pods of the gang, and without nodes
that can't drain (gang_placement.py). Pods of leaving gangs are placed with the pods of draining nodes, on every
node.

The number of steps is limited by simulationTimeBound of the policies, but a minimum number of nodes is always tried.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec.structs import replace

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.first_fit import FirstFitCursor, Search
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.questions import ScaleDownSimulation, place
from reconciler.fleet.rows import Mask
from reconciler.fleet.rows import Places as Rows
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Reason, Ref, pod_ref
from reconciler.plan.capacity.demand import title_of
from reconciler.plan.containment import planning_for
from reconciler.plan.drain.blockers import moves
from reconciler.plan.drain.codes.blockers import GangOfAnotherPolicy, IsDestination, PodWithoutPlace, TooManyForGang
from reconciler.plan.drain.codes.words import NodesWithoutRoom
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gang_placement import Crewing, GangNodes, GangPlacement, Members, crews_of, part
from reconciler.plan.drain.node_eligibility import ExcludedNodes
from reconciler.plan.drain.pods_to_move import Hinting, Moving, Movings, Places, first_blocker, take
from reconciler.plan.likeness import Likenesses
from reconciler.plan.recent_evictions import owner_of, recent, unreplaced

LEAST_TRIED = 10
STEPS_A_MS = 50  # steps of a slow machine: plans of faster machines took less time


class StrandedPod(msgspec.Struct, frozen=True):
    """A leaving pod that fits on no node."""

    pod: Ref
    node: str  # node that the pod leaves


class Rehomed(msgspec.Struct):
    """Result of the simulation."""

    homes: dict[str, str] = {}  # uid of a leaving pod -> name of its destination
    hints: dict[str, Places] = {}  # destinations of all pods, in the form of Hints
    together: dict[str, tuple[str, ...]] = {}  # nodes that can drain, in order, and the destinations of their pods
    refused: dict[str, Reason] = {}
    unplaced: dict[str, NodesWithoutRoom] = {}  # uid of a leaving pod -> what rules out the nodes that stay
    left_out: tuple[str, ...] = ()  # nodes that were not tried for lack of time
    on_their_way: tuple[Pod, ...] = ()  # evicted pods that are not scheduled yet
    homeless: StrandedPod | None = None
    evicted_without_place: frozenset[str] = frozenset()  # uids of recently evicted pods, or of their successors
    crews: dict[str, GangNodes] = {}  # groups of nodes that can drain only together
    steps: int = 0  # steps used for trying nodes


class Rehoming:
    """One search with start and direction `way`, and a step budget for the tried nodes. Run within a fork."""

    def __init__(self, context: DrainContext, members: Members, way: Search) -> None:
        self._context, self._members, self._way = context, members, way
        self._snapshot = context.fleet.snapshot
        self._row_of = self._snapshot.rows.row_of
        self._hints = Hinting(self._snapshot, context.inputs.hints.destinations)
        self._remaining = context.remaining_budgets()
        self._takers: set[int] = set()  # rows that took pods
        self._order: Sequence[DrainNode] = ()  # nodes to try
        self._ruled_out: dict[PodClass, NodesWithoutRoom] = {}
        self._allowed = self._stays = self._tried = self._empty = self._preferred = np.zeros_like(
            self._snapshot.rows.alive
        )
        self.told = Rehomed()

    def run(self, order: Sequence[DrainNode]) -> Rehomed:
        """`order`: nodes to try."""
        self._order, self._way = order, replace(self._way, order=self._rows_in_order)
        leaving = self._take_leaving()
        self._stays = self._staying(order)
        self._settle(leaving, self._of_gangs())
        if self.told.homeless is not None:
            self._hints.keep(each.name for each in order)
        else:
            self._try(order)
        self.told.hints = self._hints.found
        return self.told

    def _take_leaving(self) -> list[tuple[Node, list[Pod]]]:
        """Nodes that are leaving, each with its pods that need another node. Vacates the nodes."""
        result = []
        for facts in self._context.fleet.nodes_unsettled:
            node, row = facts.node, self._row_of.get(facts.name)
            goes = facts.is_leaving or facts.name in self._context.draining or node.taint(names.DISRUPTED) is not None
            if row is None or not goes:
                continue
            result.append((node, [pod for pod in self._snapshot.pods_of_row(row) if moves(pod)]))
            self._snapshot.vacate(row)
        return result

    def _of_gangs(self) -> list[Pod]:
        """Pods of leaving gangs on nodes that stay. Some nodes may not exist any more."""
        rows = self._snapshot.rows
        pods = [pod for gang in sorted(self._members.on_their_way) for pod in self._members.of[gang]]
        return [pod for pod in pods if pod.node in rows.row_of and rows.alive[rows.row_of[pod.node]]]

    def _staying(self, order: Sequence[DrainNode]) -> Mask:
        rows, busy = self._snapshot.rows, self._context.fleet.occupancy.counting.keys()
        mask = rows.alive.copy()
        for facts in (*self._context.fleet.nodes_unsettled, *self._context.fleet.nodes_unfit):
            mask[rows.row_of[facts.name]] = False
        mask[[rows.row_of[name] for name in self._context.draft.taken_away if name in rows.row_of]] = False
        self._empty = np.zeros_like(mask)
        self._empty[[rows.row_of[name] for name in rows.row_of.keys() - busy]] = True
        self._tried = np.zeros_like(mask)
        timed = (each for each in order if each.candidate is not None and not self._context.is_report_only(each))
        self._tried[[rows.row_of[each.name] for each in timed]] = True
        return mask

    def _settle(self, leaving: list[tuple[Node, list[Pod]]], of_gangs: list[Pod]) -> None:
        """Place all pods that are leaving already or waiting."""
        self._keep_places()
        for node, pods in leaving:
            for pod in pods:
                self._remaining.take(pod)
            if (lost := self._place(pods, node.name)) and node.name in self._context.draining:
                self.told.homeless = StrandedPod(pod_ref(lost[0]), node.name)
        for pod in of_gangs:
            self._remaining.take(pod)
            is_asked_anyway = self._context.draft.gangs.of(pod) in self._members.rest
            if self._place([pod], pod.node) and not is_asked_anyway:
                self.told.homeless = StrandedPod(pod_ref(pod), pod.node)
        anew, waiting = lacking(self._context)
        self.told.on_their_way = tuple(pod for _, pod in anew)
        for node_name, pod in anew:
            if self._place([pod], node_name):
                self.told.homeless = StrandedPod(pod_ref(pod), node_name)
                self.told.evicted_without_place |= {pod.metadata.uid}
        is_smart = self._context.draft.identity.is_smart
        self._place([pod for pod in waiting if not pod.spec.scheduling_gates and not is_smart(pod)], "")

    def _keep_places(self) -> None:
        """Reserve the nodes that another planner of this plan found for pods behind the capacity gate."""
        places = self._context.draft.capacity.places
        pods = [pod for pod in self._context.fleet.occupancy.waiting if pod.metadata.uid in places] if places else []
        if pods:
            hints = {uid: each.node for uid, each in places.items()}
            placement = place(self._snapshot, pods, Search(allowed=self._stays, hints=hints))
            self._takers.update(self._row_of[name] for name in placement.destinations.values())

    def _place(self, pods: Sequence[Pod], source: str) -> list[Pod]:
        """Place pods, and return those without a destination. Candidates and empty nodes are searched last."""
        for allowed in (self._stays & ~self._tried & ~self._empty, self._stays):
            if not pods:
                break
            hints = self._hints.of(pods, source)
            placement = place(self._snapshot, pods, replace(self._way, allowed=allowed, hints=hints, budget=None))
            self.told.homes |= placement.destinations
            for pod in pods:
                if to := placement.destinations.get(pod.metadata.uid):
                    self._hints.note(source, pod, to)
            self._takers.update(self._row_of[name] for name in placement.destinations.values())
            pods = [pod for pod in pods if pod.metadata.uid not in placement.destinations]
            self.told.unplaced |= self._unplaced_reasons(placement.unplaced, allowed, source)
        return list(pods)

    def _try(self, order: Sequence[DrainNode]) -> None:
        """Try node by node, or group by group, until the steps are used up."""
        self._allowed = self._stays & ~self._tried & ~self._empty
        self._preferred = self._allowed.copy()
        self._preferred[[self._row_of[each.name] for each in order]] = False
        self._prefer(self._takers)
        # A search that restarts for each class finds placements that a preference would miss.
        preferred = None if self._way.anew else self._preferred
        emptying = ScaleDownSimulation(self._snapshot, replace(self._way, allowed=self._allowed), preferred)
        crews, crewing = crews_of(self._members, order), Crewing(self._context, self._members, self._remaining)
        self._refuse_blocked(each for each in order if each.name not in crews)
        tried = 0
        with planning_for() as planning:
            for at, drain_node in enumerate(order):
                if drain_node.name in self.told.together or drain_node.name in self.told.refused:
                    continue  # decided already: with its group, or because of a pod that stays
                emptying.meter.budget = self._way.budget if tried >= LEAST_TRIED else None
                crew, planning.pool = crews.get(drain_node.name), drain_node.pool
                was_looked_at = self._try_crew(crew, crewing, emptying) if crew else self._try_one(drain_node, emptying)
                if emptying.meter.spent:
                    self.told.left_out = self._undecided(order[at:])
                    break
                tried += was_looked_at
        self.told.steps = emptying.meter.steps

    def _refuse_blocked(self, order: Iterable[DrainNode]) -> None:
        """Refuse nodes with a pod that stays in any case. These nodes may take pods from the first tried node on."""
        with planning_for() as planning:
            for drain_node in order:
                planning.pool = drain_node.pool
                if reason := self._blocker(drain_node, self._movings[drain_node.name]):
                    self._refuse(drain_node, reason)

    @cached_property
    def _movings(self) -> Mapping[str, Moving]:
        return self._context.per_node(Movings)

    def _prefer(self, rows: Iterable[int]) -> None:
        """Prefer nodes that took pods: they stay, so further pods go there before nodes that could drain."""
        for row in rows:
            self._preferred[row] = self._allowed[row]

    def _rows_in_order(self) -> Rows:
        """All rows: tried nodes in order, then nodes that stay. Names decide only between equal nodes. A search starts
        from the end: with nodes that stay, then with nodes that are tried last.
        """
        rows, alike = self._snapshot.rows, self._snapshot.part(Likenesses)
        tried = [rows.row_of[each.name] for each in self._order]
        known = set(tried)
        others = (row for row in rows.order.tolist() if row not in known)
        return np.array([*tried, *sorted(others, key=alike.of)], np.intp)

    def _try_one(self, drain_node: DrainNode, emptying: ScaleDownSimulation) -> bool:
        """Try one node. Returns whether destinations were searched."""
        row, moving = self._row_of[drain_node.name], self._movings[drain_node.name]
        if reason := self._blocker(drain_node, moving):
            self._refuse(drain_node, reason)
            return False
        moved = emptying.one(row, self._hints.before(drain_node.name))
        if emptying.meter.spent:
            return False
        if isinstance(moved, PodClass):
            self._allow(drain_node)
            self.told.refused[drain_node.name] = self._no_place(drain_node, row, moved)
        else:
            take(self._remaining, moving)
            rows, self.told.together[drain_node.name] = self._hints.moved(drain_node.name, moved)
            self._takers.update(rows)
            self._prefer(rows)
        return not moving.is_empty

    def _try_crew(self, crew: GangNodes, crewing: Crewing, emptying: ScaleDownSimulation) -> bool:
        """Try nodes that drain together. If the group can't drain, the nodes that can't drain are left out. Returns
        whether the steps sufficed.
        """
        for each in crew.too_many:
            too_many = TooManyForGang(
                node=each.name,
                other=crew.nodes[0].name,
                policy=each.policy_ref,
                most=crew.most,
                nodes=len(crew.nodes) + len(crew.too_many),
            )
            self._refuse(each, each.reason(too_many, "maxDrainParallelism"))
        for each in crew.elsewhere:
            gang, pod = self._members.first_on(each.name)
            elsewhere = GangOfAnotherPolicy(
                pod=pod_ref(pod), node=each.name, gang=title_of(gang), other=crew.nodes[0].name
            )
            self._refuse(each, each.reason(elsewhere))
        came = self._crew_tried(crew, crewing, emptying.walk)
        gang_nodes, homes = crew if came.goes else part(self._members, ()), came.homes
        for each in () if came.goes else crew.nodes:
            if emptying.meter.spent:
                break
            beside = part(self._members, (*gang_nodes.nodes, each))
            came = self._crew_tried(beside, crewing, emptying.walk) if len(crew.nodes) > 1 else came
            if came.goes:
                gang_nodes, homes = beside, came.homes
            elif came.kept is not None:
                self._refuse(each, came.kept)
        if gang_nodes.nodes:
            self._crew_goes(gang_nodes, crewing.go(gang_nodes, homes), homes)
        return not emptying.meter.spent

    def _crew_tried(self, crew: GangNodes, crewing: Crewing, walk: FirstFitCursor) -> GangPlacement:
        meter = walk.meter
        budget = None if meter.budget is None else max(0, meter.budget - meter.steps)
        hints = self._hints.of_nodes(crewing.hinted(crew))
        pointer = self._way.pointer if self._way.anew else walk.pointer
        way = replace(self._way, pointer=pointer, allowed=self._allowed, hints=hints, budget=budget)
        came = crewing.tried(crew, self._takers, way)
        meter.spent |= came.is_spent
        meter.steps += came.steps
        walk.stand_at(came.pointer or walk.pointer)
        return came

    def _refuse(self, drain_node: DrainNode, why_not: Reason) -> None:
        self.told.refused[drain_node.name] = why_not
        self._allow(drain_node)

    def _allow(self, drain_node: DrainNode) -> None:
        """The node stays, and may take pods."""
        row = self._row_of[drain_node.name]
        self._allowed[row] = self._preferred[row] = self._stays[row]

    def _undecided(self, order: Sequence[DrainNode]) -> tuple[str, ...]:
        decided = self.told.together.keys() | self.told.refused.keys()
        return tuple(each.name for each in order if each.name not in decided)

    def _crew_goes(self, crew: GangNodes, moving: Mapping[str, Pod], homes: Mapping[str, str]) -> None:
        for uid, pod in moving.items():
            self._hints.note(pod.node, pod, homes[uid])
        self._takers.update(self._row_of[name] for name in homes.values())
        for each in crew.nodes:
            there = (homes[uid] for uid, pod in moving.items() if pod.node == each.name)
            self.told.together[each.name] = tuple(sorted(set(there)))
            self.told.crews[each.name] = crew

    def _blocker(self, drain_node: DrainNode, moving: Moving) -> Reason | None:
        if self._row_of[drain_node.name] in self._takers:
            said = self._context.said.again
            return said(
                drain_node.name,
                "takes",
                drain_node.policy,
                lambda: drain_node.reason(IsDestination(node=drain_node.name)),
            )
        return first_blocker(self._context, self._remaining, drain_node, moving)

    def _no_place(self, drain_node: DrainNode, row: int, stuck: PodClass) -> Reason:
        """Reason with the predicates that rule out nodes. Computed once for equal pods."""
        if stuck not in self._ruled_out or not stuck.is_plain:
            with self._snapshot.fork():
                self._snapshot.vacate(row)
                counted = self._snapshot.part(FilterChain).counted(stuck, self._allowed)
                takes = self._allowed & self._snapshot.rows.alive
                self._ruled_out[stuck] = self._set_aside.no_room(counted, takes, (drain_node.name,))
        of = self._snapshot.classes.of
        pod = next(pod for pod in self._snapshot.pods_of_row(row) if of(pod).anew is stuck)
        return drain_node.reason(
            PodWithoutPlace(pod=pod_ref(pod), node=drain_node.name, ruled_out=self._ruled_out[stuck])
        )

    def _unplaced_reasons(
        self, unplaced: Mapping[str, Rejections], allowed: Mask, source: str
    ) -> dict[str, NodesWithoutRoom]:
        """What rules out nodes for unplaced pods of a node; empty for waiting pods, which need no reason."""
        takes, refused_nodes = allowed & self._snapshot.rows.alive, dict[int, NodesWithoutRoom]()
        for each in unplaced.values() if source else ():
            if id(each) not in refused_nodes:  # equal rejections are one object
                refused_nodes[id(each)] = self._set_aside.no_room(each, takes, (source,))
        return {uid: refused_nodes[id(each)] for uid, each in unplaced.items()} if source else {}

    @cached_property
    def _set_aside(self) -> ExcludedNodes:
        return ExcludedNodes(self._context)


def steps_of(context: DrainContext) -> int:
    """Step budget of one plan."""
    bounds = [each.spec.simulation_time_bound.milliseconds for each in context.policies]
    return min(context.inputs.budget, max(bounds, default=0) * STEPS_A_MS)


# --- Recently evicted pods and their successors that need a node.


def lacking(context: DrainContext) -> tuple[list[tuple[str, Pod]], list[Pod]]:
    """Pods that need a node because of a recent eviction, each with its previous node; and all other waiting pods."""
    waiting = context.fleet.snapshot.waiting
    lately = recent(context.inputs)
    if not lately:
        return [], waiting
    left = {each.owner: each.node for each in reversed(lately) if each.owner}
    found = [(each.node, pod) for each, pod in unreplaced(context.inputs)]
    coming = [pod for pod in waiting if owner_of(pod) in left and not pod.spec.scheduling_gates]
    found += [(left[owner_of(pod)], pod) for pod in coming]
    known = {pod.metadata.uid for pod in coming}
    return found, [pod for pod in waiting if pod.metadata.uid not in known]
