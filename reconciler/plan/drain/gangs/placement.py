"""Whether nodes that go together can: nothing keeps any of their pods, and all find places at once, gangs as a whole.

Pods of their gangs that run on nodes which stay leave these too, and need other room than they have: theirs is taken
until they have ended, and who comes after them must not wait for it. Karpenter would buy a node for such a one, for
whose sake the gang would be moved again. All nodes of a crew are tried at once first; where these can't go,
one after the other, in order, each beside those before it that can.
"""

from collections.abc import Iterable, Mapping

import msgspec

from reconciler.fleet.first_fit import Search
from reconciler.fleet.questions import place
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.capacity.gangs import Gang, title_of
from reconciler.plan.drain.blockers import blocker, moves
from reconciler.plan.drain.codes.blockers import GangWithoutPlace, PodWithoutPlace
from reconciler.plan.drain.codes.eligibility import IsDestination
from reconciler.plan.drain.codes.figures import NodesWithoutRoom
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gangs.crews import GangNodes
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.gangs.obstacles import obstacle
from reconciler.plan.drain.nodes.set_aside import ExcludedNodes
from reconciler.plan.nodes.eviction import Remaining


class GangPlacement(msgspec.Struct, frozen=True):
    """What came of it: they go, or the last of them stays, or it is not known."""

    homes: Mapping[str, str] = {}  # uid of a pod -> name of a node
    kept: Reason | None = None
    steps: int = 0
    pointer: str = ""
    is_spent: bool = False

    @property
    def goes(self) -> bool:
        return self.kept is None and not self.is_spent


class Crewing:
    """Asks of one crew after the other, with what those before it took."""

    def __init__(self, context: DrainContext, members: Members, remaining: Remaining) -> None:
        self._context, self._members, self._remaining = context, members, remaining
        self._snapshot: Snapshot = context.fleet.snapshot

    def tried(self, crew: GangNodes, takers: set[int], search: Search) -> GangPlacement:
        """Whether all go, or else why the last of them does not beside the others; nothing is changed by it.
        `takers`: rows that took pods in."""
        rows, last = self._snapshot.rows.row_of, crew.nodes[-1]
        if any(rows[each.name] in takers for each in crew.nodes):
            return GangPlacement(kept=last.reason(IsDestination(node=last.name)))
        if kept := self._blocked(crew, last):
            return GangPlacement(kept=kept)
        with self._snapshot.fork():
            return self._placed(crew, search)

    def go(self, crew: GangNodes, homes: Mapping[str, str]) -> dict[str, Pod]:
        """They are gone from the fleet, and draw on budgets; all pods that move with them, by uid."""
        snapshot, moving = self._snapshot, self._moving(crew)
        self._vacate(crew)
        for uid, pod in moving.items():
            snapshot.add(snapshot.classes.of(pod).anew, snapshot.rows.row_of[homes[uid]])
            self._remaining.take(pod)
        return moving

    def hinted(self, crew: GangNodes) -> Iterable[Pod]:
        """Whose places of the last time are to be tried first."""
        return self._moving(crew).values()

    def _moving(self, crew: GangNodes) -> dict[str, Pod]:
        """All that leaves, by uid: what runs on its nodes, and all of its gangs; what moves already left out."""
        pods = [pod for each in crew.nodes for pod in self._pods_of(each)]
        pods += [pod for gang in crew.gangs for pod in self._members.of[gang]]
        return {pod.metadata.uid: pod for pod in pods}

    def _blocked(self, crew: GangNodes, last: DrainNode) -> Reason | None:
        """Why one of them stays, whatever room there is."""
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
        """Within a fork."""
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
        """What would have to leave it, and is not on its way already with its gang."""
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
        """One on the node, if there is one."""
        pods = self._members.of[gang]
        return next((pod for pod in pods if pod.node == drain_node.name), pods[0])

    def _rank(self, pod: Pod) -> tuple[object, str]:
        return self._snapshot.classes.of(pod).anew.rank, pod.title
