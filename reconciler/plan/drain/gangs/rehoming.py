"""Whether nodes that go together can: nothing keeps any of their pods, and all find places at once, gangs as a whole.

Pods of their gangs that run on nodes which stay leave these too, and give their room back, for the others or for
themselves: they may come back to where they were.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from reconciler.fleet.placing import Search
from reconciler.fleet.questions import place
from reconciler.fleet.what_if import WhatIf
from reconciler.model.cluster.pod import Pod
from reconciler.model.planned.reason import Reason
from reconciler.plan.drain import reasons
from reconciler.plan.drain.blockers import blocker, moves
from reconciler.plan.drain.gangs.crews import Crew
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.gangs.obstacles import obstacles
from reconciler.plan.drain.nodes.set_aside import SetAside
from reconciler.plan.drain.site import Seen, Site, why
from reconciler.plan.eviction import Remaining
from reconciler.plan.requests.gangs import Gang, title_of

Telling = Callable[[Seen, Pod], Reason]  # a node, and a pod of the gang there


class Tried(msgspec.Struct, frozen=True):
    """What came of it: they go, or some of them stay, or it is not known."""

    homes: Mapping[str, str] = {}  # uid of a pod -> name of a node
    kept: Mapping[str, Reason] = {}  # name of a node that stays -> why; without these the others may go
    steps: int = 0
    pointer: str = ""
    is_spent: bool = False


class Crewing:
    """Asks of one crew after the other, with what those before it took."""

    def __init__(self, site: Site, members: Members, remaining: Remaining) -> None:
        self._site, self._members, self._remaining = site, members, remaining
        self._what_if: WhatIf = site.fleet.what_if

    def moving(self, crew: Crew) -> dict[str, Pod]:
        """All that leaves, by uid: what runs on its nodes, and all of its gangs; what moves already left out."""
        found = [pod for each in crew.nodes for pod in self._pods_of(each)]
        found += [pod for gang in crew.gangs for pod in self._members.of[gang]]
        return {pod.metadata.uid: pod for pod in found}

    def tried(self, crew: Crew, takers: set[int], search: Search) -> Tried:
        """`takers`: rows that took pods in. Where all go, the fleet is left so, and budgets drawn on."""
        rows, trial = self._what_if.rows.row_of, self._remaining.copy()
        taker = next((each for each in crew.nodes if rows[each.name] in takers), None)
        if taker is not None:
            return Tried(kept={taker.name: why(taker, reasons.DESTINATION)})
        if kept := self._kept(crew, trial):
            return Tried(kept=kept)
        found = self._placed(crew, search)
        if not (found.kept or found.is_spent):
            for pod in self.moving(crew).values():
                self._remaining.take(pod)
        return found

    def _kept(self, crew: Crew, trial: Remaining) -> dict[str, Reason]:
        """Why its nodes stay, whatever room there is."""
        return next(self._keeping(crew, trial), {})

    def keepers(self, crew: Crew) -> Iterator[Mapping[str, Reason]]:
        """All that keeps them, whatever room there is; each as its nodes are told of it."""
        return self._keeping(crew, self._remaining.copy())

    def _keeping(self, crew: Crew, trial: Remaining) -> Iterator[dict[str, Reason]]:
        for gang in crew.gangs:
            for found in obstacles(self._site, self._members, gang, trial):
                yield self._for_gang(crew, gang, found.to)
        for each in crew.nodes:
            for pod in self._others_on(each, crew):
                if reason := blocker(self._site, trial, each, pod):
                    yield {each.name: reason}

    def _placed(self, crew: Crew, search: Search) -> Tried:
        """Leaves the fleet with the nodes gone and their pods elsewhere, where all find a place."""
        what_if, rows = self._what_if, self._what_if.rows.row_of
        gone = {each.name for each in crew.nodes}
        moving = self.moving(crew)
        with what_if.fork() as fork:
            for name in sorted(gone):
                what_if.vacate(rows[name])
            for pod in moving.values():
                if pod.node not in gone:
                    what_if.remove(what_if.classes.of(pod), rows[pod.node])
            found = place(what_if, sorted(moving.values(), key=self._rank), search)
            if found.not_evaluated:
                return Tried(is_spent=True)
            if not found.unplaced:
                fork.commit()
                return Tried(found.destinations, steps=found.steps, pointer=found.pointer)
            lost = next(uid for uid in moving if uid in found.unplaced)
            takes = what_if.rows.alive if search.allowed is None else what_if.rows.alive & search.allowed
            ruled_out = SetAside(self._site).told(found.unplaced[lost], takes, gone)
        return Tried(kept=self._no_place(crew, moving[lost], ruled_out), steps=found.steps)

    def _pods_of(self, seen: Seen) -> list[Pod]:
        """What would have to leave it, and is not on its way already with its gang."""
        there = self._what_if.pods_of_row(self._what_if.rows.row_of[seen.name])
        of, gone = self._site.draft.gangs.of, self._members.on_their_way
        return [pod for pod in there if moves(pod) and of(pod) not in gone]

    def _others_on(self, seen: Seen, crew: Crew) -> list[Pod]:
        of = self._site.draft.gangs.of
        return [pod for pod in self._pods_of(seen) if of(pod) not in crew.gangs]

    def _no_place(self, crew: Crew, lost: Pod, ruled_out: str) -> dict[str, Reason]:
        """The node of the pod, or of its gang that which would be tried last: without it there may be room for all."""
        gang = self._site.draft.gangs.of(lost)
        if gang not in crew.gangs:
            (seen,) = [each for each in crew.nodes if each.name == lost.node]
            return {seen.name: why(seen, reasons.NO_PLACE, pod=f"Pod/{lost.title}", ruled_out=ruled_out)}

        def told(seen: Seen, pod: Pod) -> Reason:
            facts = {"lost": f"Pod/{lost.title}", "gang": title_of(gang), "ruled_out": ruled_out}
            return why(seen, reasons.GANG_NO_PLACE, pod=f"Pod/{pod.title}", **facts)

        return dict([list(self._for_gang(crew, gang, told).items())[-1]])

    def _for_gang(self, crew: Crew, gang: Gang, told: Telling) -> dict[str, Reason]:
        """Nodes that hold a pod of it are told of that one."""
        found: dict[str, Reason] = {}
        for each in crew.nodes:
            pod = next((pod for pod in self._members.of[gang] if pod.node == each.name), None)
            if pod is not None:
                found[each.name] = told(each, pod)
        return found

    def _rank(self, pod: Pod) -> tuple[object, str]:
        return self._what_if.classes.of(pod).anew.rank, pod.title
