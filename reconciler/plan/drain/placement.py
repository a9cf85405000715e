"""Where pods would go: which nodes can be emptied together, if all that runs on them fits on nodes that stay.

Theory of operation. In a fork of the what-if fleet, which is taken back as a whole, everything that leaves is taken
away first, and places are found in this order: for pods whose gate is lifted in this plan, on the nodes that were found
for them; for pods on nodes that are being drained; for pods that were evicted
lately and that nobody has made anew yet, at most as many as their owner lacks, and for those that were and wait; for
all others that wait. If one of the first two finds none, there are no candidates: what was begun comes first.

Then each node in its turn, in a fork of its own: its pods, in the order of how hard they are to place, go where they
went the last time, else to a node that stays in any case, the fullest first: one that is not tried, that a pod keeps,
or that took pods of others. Only if none of these takes them, they go to a node that could go itself, the last in turn
first, which stays from then on. A node that was a candidate before and is to be tried, or was found to go, takes none;
nor does one that leaves, that is not ready, or that is empty: to move pods to an empty node frees none. A node that
took pods in is not emptied itself. Names decide only between nodes that are alike, so that how many nodes can go does
not depend on them (where no pod says anything of other pods, and hints say nothing).

If all find a place that stays so, and what they cost of PodDisruptionBudgets is gone for those that come after; else
all of it is taken back. A budget that allows some, but not all of a node's pods at once, is no hindrance: they go one
after the other.
Nodes on which one gang runs are tried together, with all its pods, and without those that can't go (gangs/); of gangs
that are on their way already all pods are placed with those on nodes that are being drained, wherever they run.

Steps are limited, by the policies' simulationTimeBound; but so many nodes are tried in any case.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec.structs import replace

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.first_fit import FirstFitCursor, Search
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.questions import place
from reconciler.fleet.rows import Mask
from reconciler.fleet.rows import Places as Rows
from reconciler.fleet.scale_down_simulation import Emptying
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.capacity.gangs import title_of
from reconciler.plan.containment import planning_for
from reconciler.plan.drain.blockers import moves
from reconciler.plan.drain.codes.blockers import GangOfAnotherPolicy, PodWithoutPlace, TooManyForGang
from reconciler.plan.drain.codes.eligibility import IsDestination
from reconciler.plan.drain.codes.figures import NodesWithoutRoom
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gangs.crews import GangNodes, crews_of, part
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.gangs.placement import Crewing, Tried
from reconciler.plan.drain.nodes.hints import Hinting, Places
from reconciler.plan.drain.nodes.pods_to_move import Moving, Movings, first_blocker, take
from reconciler.plan.drain.nodes.set_aside import SetAside
from reconciler.plan.drain.pending_replacements import lacking
from reconciler.plan.likeness import Likenesses
from reconciler.plan.nodes.eviction import Remaining

LEAST_TRIED = 10
STEPS_A_MS = 50  # of a slow machine: others have done in less time what so many steps allow


class StrandedPod(msgspec.Struct, frozen=True):
    """A pod that leaves and finds no place."""

    pod: Ref
    node: str  # that it leaves


class Rehomed(msgspec.Struct):
    """What came of it."""

    homes: dict[str, str] = {}  # uid of a pod that leaves already -> name of the node that it would go to
    hints: dict[str, Places] = {}  # where all would go, as Hints tells it
    together: dict[str, tuple[str, ...]] = {}  # nodes that can go, in order, and where their pods would go
    refused: dict[str, Reason] = {}
    unplaced: dict[str, NodesWithoutRoom] = {}  # uid of a pod that leaves -> what rules out the nodes that stay
    left_out: tuple[str, ...] = ()  # nodes for which there was no time
    on_their_way: tuple[Pod, ...] = ()  # those that were evicted, and are in no place yet
    homeless: StrandedPod | None = None
    evicted_without_place: frozenset[str] = frozenset()  # uids of pods that were evicted lately, or of their successors
    crews: dict[str, GangNodes] = {}  # of nodes that can go, and do so together with others or not at all
    steps: int = 0  # that were taken for nodes that were tried


class Rehoming:
    """One search, `way` along the nodes, with its budget for those that are tried; within a fork."""

    def __init__(self, site: DrainContext, members: Members, way: Search) -> None:
        self._site, self._members, self._way = site, members, way
        self._what_if = site.fleet.what_if
        self._hints = Hinting(self._what_if, site.inputs.hints.destinations)
        self._movings = self._what_if.part(Movings)
        self._remaining = Remaining(site.budgets)
        self._takers: set[int] = set()  # rows that took pods of others
        self._order: Sequence[DrainNode] = ()  # the nodes that are to be tried
        self._ruled_out: dict[PodClass, NodesWithoutRoom] = {}
        self._allowed = self._stays = self._tried = self._empty = self._preferred = np.zeros_like(
            self._what_if.rows.alive
        )
        self.told = Rehomed()

    def run(self, order: Sequence[DrainNode]) -> Rehomed:
        """`order`: the nodes that are to be tried."""
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
        """Nodes that are on their way out with what runs there, and the pods that will need another place."""
        found = []
        for facts in self._site.fleet.nodes_unsettled:
            node, row = facts.node, self._what_if.rows.row_of.get(facts.name)
            goes = facts.is_leaving or facts.name in self._site.draining or node.taint(names.DISRUPTED) is not None
            if row is None or not goes:
                continue
            found.append((node, [pod for pod in self._what_if.pods_of_row(row) if moves(pod)]))
            self._what_if.vacate(row)
        return found

    def _of_gangs(self) -> list[Pod]:
        """Of gangs that are on their way, those pods that leave nodes which stay; some nodes may be gone altogether."""
        rows = self._what_if.rows
        found = [pod for gang in sorted(self._members.on_their_way) for pod in self._members.of[gang]]
        return [pod for pod in found if pod.node in rows.row_of and rows.alive[rows.row_of[pod.node]]]

    def _staying(self, order: Sequence[DrainNode]) -> Mask:
        rows, counting = self._what_if.rows, self._site.fleet.occupancy.counting
        found = rows.alive.copy()
        for facts in (*self._site.fleet.nodes_unsettled, *self._site.fleet.nodes_unfit):
            found[rows.row_of[facts.name]] = False
        found[[rows.row_of[name] for name in self._site.draft.taken_away if name in rows.row_of]] = False
        self._empty = np.zeros_like(found)
        self._empty[[row for name, row in rows.row_of.items() if not counting[name]]] = True
        self._tried = np.zeros_like(found)
        timed = (each for each in order if each.candidate is not None and not self._site.is_only_told(each))
        self._tried[[rows.row_of[each.name] for each in timed]] = True
        return found

    def _settle(self, leaving: list[tuple[Node, list[Pod]]], of_gangs: list[Pod]) -> None:
        """Places for what is on its way already."""
        self._keep_places()
        for node, pods in leaving:
            for pod in pods:
                self._remaining.take(pod)
            if (lost := self._place(pods, node.name)) and node.name in self._site.draining:
                self.told.homeless = StrandedPod(pod_ref(lost[0]), node.name)
        for pod in of_gangs:
            self._remaining.take(pod)
            is_asked_anyway = self._site.draft.gangs.of(pod) in self._members.rest
            if self._place([pod], pod.node) and not is_asked_anyway:
                self.told.homeless = StrandedPod(pod_ref(pod), pod.node)
        anew, waiting = lacking(self._site)
        self.told.on_their_way = tuple(pod for _, pod in anew)
        for node_name, pod in anew:
            if self._place([pod], node_name):
                self.told.homeless = StrandedPod(pod_ref(pod), node_name)
                self.told.evicted_without_place |= {pod.metadata.uid}
        is_smart = self._site.draft.identity.is_smart
        self._place([pod for pod in waiting if not pod.spec.scheduling_gates and not is_smart(pod)], "")

    def _keep_places(self) -> None:
        """Of pods behind our gate for which another planner of this plan has found nodes with room: those stay."""
        places = self._site.draft.answered.places
        pods = [pod for pod in self._site.fleet.occupancy.waiting if pod.metadata.uid in places] if places else []
        if pods:
            hints = {uid: each.node for uid, each in places.items()}
            found = place(self._what_if, pods, Search(allowed=self._stays, hints=hints))
            self._takers.update(self._what_if.rows.row_of[name] for name in found.destinations.values())

    def _place(self, pods: Sequence[Pod], source: str) -> list[Pod]:
        """Books them, and gives back those that found no place; candidates and empty nodes are asked last."""
        for allowed in (self._stays & ~self._tried & ~self._empty, self._stays):
            if not pods:
                break
            hints = self._hints.of(pods, source)
            found = place(self._what_if, pods, replace(self._way, allowed=allowed, hints=hints, budget=None))
            self.told.homes |= found.destinations
            for pod in pods:
                if to := found.destinations.get(pod.metadata.uid):
                    self._hints.note(source, pod, to)
            self._takers.update(self._what_if.rows.row_of[name] for name in found.destinations.values())
            pods = [pod for pod in pods if pod.metadata.uid not in found.destinations]
            self.told.unplaced |= self._told_unplaced(found.unplaced, allowed, source)
        return list(pods)

    def _try(self, order: Sequence[DrainNode]) -> None:
        """One node after the other, or with those that go only with it, until the steps are used up."""
        self._allowed = self._stays & ~self._tried & ~self._empty
        self._preferred = self._allowed.copy()
        self._preferred[[self._what_if.rows.row_of[each.name] for each in order]] = False
        self._prefer(self._takers)
        # A search that begins anew with each class tries what a preference for some nodes would miss.
        preferred = None if self._way.anew else self._preferred
        emptying = Emptying(self._what_if, replace(self._way, allowed=self._allowed), preferred)
        crews, crewing = crews_of(self._members, order), Crewing(self._site, self._members, self._remaining)
        self._refuse_blocked(each for each in order if each.name not in crews)
        tried = 0
        for at, seen in enumerate(order):
            if seen.name in self.told.together or seen.name in self.told.refused:
                continue  # with others of its crew
            emptying.meter.budget = self._way.budget if tried >= LEAST_TRIED else None
            crew = crews.get(seen.name)
            with planning_for(seen.pool):
                was_looked_at = self._try_crew(crew, crewing, emptying) if crew else self._try_one(seen, emptying)
            self.told.steps = emptying.meter.steps
            if emptying.meter.spent:
                self.told.left_out = self._undecided(order[at:])
                return
            tried += was_looked_at

    def _refuse_blocked(self, order: Iterable[DrainNode]) -> None:
        """What a pod keeps whoever goes before is known to stay, and takes pods of others from the first node on."""
        for seen in order:
            row = self._what_if.rows.row_of[seen.name]
            with planning_for(seen.pool):
                if found := self._blocker(seen, row, self._movings.of(row)):
                    self._refuse(seen, found)

    def _prefer(self, rows: Iterable[int]) -> None:
        """Nodes that took pods of others stay: further ones go there before they go to nodes that could go."""
        for row in rows:
            self._preferred[row] = self._allowed[row]

    def _rows_in_order(self) -> Rows:
        """All rows, those first that are tried first, then those of nodes that stay. Nothing in it depends on names but
        the order of nodes that are alike. Places are looked for from the end: with nodes that stay, then with those
        that would be tried last."""
        rows, alike = self._what_if.rows, self._what_if.part(Likenesses)
        tried = [rows.row_of[each.name] for each in self._order]
        known = set(tried)
        others = (row for row in rows.order.tolist() if row not in known)
        return np.array([*tried, *sorted(others, key=alike.of)], np.intp)

    def _try_one(self, seen: DrainNode, emptying: Emptying) -> bool:
        """Whether places were looked for."""
        row = self._what_if.rows.row_of[seen.name]
        moving = self._movings.of(row)
        if found := self._blocker(seen, row, moving):
            self._refuse(seen, found)
            return False
        moved = emptying.one(row, self._hints.before(seen.name))
        if emptying.meter.spent:
            return False
        if isinstance(moved, PodClass):
            self._allow(seen)
            self.told.refused[seen.name] = self._no_place(seen, row, moved)
        else:
            take(self._remaining, moving)
            self._takers.update([each.to for each in moved])
            self._prefer([each.to for each in moved])
            self.told.together[seen.name] = self._hints.moved(seen.name, moved)
        return bool(moving.pods)

    def _try_crew(self, crew: GangNodes, crewing: Crewing, emptying: Emptying) -> bool:
        """The same of nodes that go together; those that can't go stay, and the others are tried without them."""
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
        going, homes = crew if came.goes else part(self._members, ()), came.homes
        for each in () if came.goes else crew.nodes:
            if emptying.meter.spent:
                break
            beside = part(self._members, (*going.nodes, each))
            came = self._crew_tried(beside, crewing, emptying.walk) if len(crew.nodes) > 1 else came
            if came.goes:
                going, homes = beside, came.homes
            elif came.kept is not None:
                self._refuse(each, came.kept)
        if going.nodes:
            self._crew_goes(going, crewing.go(going, homes), homes)
        return not emptying.meter.spent

    def _crew_tried(self, crew: GangNodes, crewing: Crewing, walk: FirstFitCursor) -> Tried:
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

    def _refuse(self, seen: DrainNode, why_not: Reason) -> None:
        self.told.refused[seen.name] = why_not
        self._allow(seen)

    def _allow(self, seen: DrainNode) -> None:
        """It stays, and may take pods of others if it can."""
        row = self._what_if.rows.row_of[seen.name]
        self._allowed[row] = self._preferred[row] = self._stays[row]

    def _undecided(self, order: Sequence[DrainNode]) -> tuple[str, ...]:
        decided = self.told.together.keys() | self.told.refused.keys()
        return tuple(each.name for each in order if each.name not in decided)

    def _crew_goes(self, crew: GangNodes, moving: Mapping[str, Pod], homes: Mapping[str, str]) -> None:
        for uid, pod in moving.items():
            self._hints.note(pod.node, pod, homes[uid])
        self._takers.update(self._what_if.rows.row_of[name] for name in homes.values())
        for each in crew.nodes:
            there = (homes[uid] for uid, pod in moving.items() if pod.node == each.name)
            self.told.together[each.name] = tuple(sorted(set(there)))
            self.told.crews[each.name] = crew

    def _blocker(self, seen: DrainNode, row: int, moving: Moving) -> Reason | None:
        if row in self._takers:
            said = self._site.said.again
            return said(seen.name, "takes", seen.policy, lambda: seen.reason(IsDestination(node=seen.name)))
        return first_blocker(self._site, self._remaining, seen, moving)

    def _no_place(self, seen: DrainNode, row: int, stuck: PodClass) -> Reason:
        """Which predicates rule out how many nodes; found once for pods that are alike."""
        if stuck not in self._ruled_out or not stuck.is_plain:
            with self._what_if.fork():
                self._what_if.vacate(row)
                counted = self._what_if.part(FilterChain).counted(stuck, self._allowed)
                takes = self._allowed & self._what_if.rows.alive
                self._ruled_out[stuck] = self._set_aside.no_room(counted, takes, (seen.name,))
        of = self._what_if.classes.of
        pod = next(pod for pod in self._what_if.pods_of_row(row) if of(pod).anew is stuck)
        return seen.reason(PodWithoutPlace(pod=pod_ref(pod), node=seen.name, ruled_out=self._ruled_out[stuck]))

    def _told_unplaced(
        self, unplaced: Mapping[str, Rejections], allowed: Mask, source: str
    ) -> dict[str, NodesWithoutRoom]:
        """The same of pods that leave a node; nothing of those that wait, of which nobody asks."""
        takes, told = allowed & self._what_if.rows.alive, dict[int, NodesWithoutRoom]()
        for each in unplaced.values() if source else ():
            if id(each) not in told:  # one object for all that are alike
                told[id(each)] = self._set_aside.no_room(each, takes, (source,))
        return {uid: told[id(each)] for uid, each in unplaced.items()} if source else {}

    @cached_property
    def _set_aside(self) -> SetAside:
        return SetAside(self._site)


def steps_of(site: DrainContext) -> int:
    """How many a plan has."""
    bounds = [each.spec.simulation_time_bound.milliseconds for each in site.policies]
    return min(site.inputs.budget, max(bounds, default=0) * STEPS_A_MS)
