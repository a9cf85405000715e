"""All that keeps one node from being emptied, pod by pod: a plan tells the first, and a person asks for the others.

Who takes what is left of PodDisruptionBudgets, and room, depends on who went before. So the search for places is done
once more, the way the plan went, and when the turn of the node comes each of its pods is asked about. A node that is
not tried, for whatever reason, is asked about at the end, when others have taken what they need.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from reconciler.fleet.filters.gpu_claims import GpuClaims
from reconciler.fleet.first_fit import Search
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.questions import place
from reconciler.fleet.scale_down_simulation import ScaleDownSimulation
from reconciler.model.plan.action import Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.draft import Draft
from reconciler.plan.drain.blockers import blocker
from reconciler.plan.drain.candidates import EligibilityContext
from reconciler.plan.drain.codes.blockers import PodBlocker, PodWithoutPlace
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.gangs.crews import GangNodes
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.gangs.obstacles import obstacles
from reconciler.plan.drain.gangs.placement import Crewing
from reconciler.plan.drain.nodes.eligible import eligible
from reconciler.plan.drain.placement import Rehoming
from reconciler.plan.drain.placement_search import rehome


def keepers(inputs: Inputs, draft: Draft, node: str) -> list[Reason]:
    """Why each of its pods stays, by namespace and name; nothing where no pod keeps it, or no policy names its pool."""
    context = DrainContext(inputs, draft)
    drain_node = context.by_name.get(node)
    if drain_node is None:
        return []
    members, snapshot = Members(context), context.fleet.snapshot
    trial = rehome(context, eligible(EligibilityContext(context)).order, members)
    with snapshot.fork(), snapshot.part(GpuClaims).judged(context.claims.pools, context.fleet.lent.keys()):
        return _Asking(context, members, trial.way, drain_node).hold_reasons(trial.order)


def pod_of(reason: Reason) -> Ref | None:
    """The pod that keeps its node; None where none does."""
    return reason.facts.pod if isinstance(reason.facts, PodBlocker) else None


class _Asking(Rehoming):
    """A search that looks closer at one node."""

    def __init__(self, context: DrainContext, members: Members, way: Search, drain_node: DrainNode) -> None:
        super().__init__(context, members, way)
        self._asked_about = drain_node
        self._reasons: list[Reason] | None = None

    def hold_reasons(self, order: Sequence[DrainNode]) -> list[Reason]:
        self.run(order)
        return self._blockers() if self._reasons is None else self._reasons

    def _refuse_blocked(self, order: Iterable[DrainNode]) -> None:
        """The node is asked about in its turn, whatever keeps it."""
        super()._refuse_blocked(each for each in order if each is not self._asked_about)

    def _try_one(self, drain_node: DrainNode, emptying: ScaleDownSimulation) -> bool:
        if drain_node is self._asked_about:
            kept = self._blockers()
            known = set(map(pod_of, kept))
            homeless = self._homeless(emptying.walk.pointer)
            self._reasons = [*kept, *(each for each in homeless if pod_of(each) not in known)]
        return super()._try_one(drain_node, emptying)

    def _try_crew(self, crew: GangNodes, crewing: Crewing, emptying: ScaleDownSimulation) -> bool:
        if any(each.name == self._asked_about.name for each in crew.nodes):
            self._reasons = self._blockers()
        return super()._try_crew(crew, crewing, emptying)

    def _blockers(self) -> list[Reason]:
        """What keeps its pods whatever room there is; each gang is asked about as a whole."""
        context, drain_node, gangs = self._context, self._asked_about, self._members
        reasons: list[Reason] = []
        blockers: set[tuple[str, str]] = set()
        for pod in self._movings.of(self._snapshot.rows.row_of[drain_node.name]).pods:
            gang = context.draft.gangs.of(pod)
            if gang is None or gang in gangs.on_their_way:
                reasons += filter(None, [blocker(context, self._remaining, drain_node, pod)])
            elif gang not in blockers:
                blockers.add(gang)
                reasons += [
                    each.to(drain_node, pod) for each in obstacles(context, gangs, gang, self._remaining.copy())
                ]
        return list(dict.fromkeys(reasons))

    def _homeless(self, pointer: str) -> Iterator[Reason]:
        """Its pods for which there is no room beside the others; of those that are alike, the first by name."""
        snapshot, drain_node = self._snapshot, self._asked_about
        row, of = snapshot.rows.row_of[drain_node.name], snapshot.classes.of
        if row in self._takers:
            return
        pods = self._movings.of(row).pods
        with snapshot.fork():
            snapshot.vacate(row)
            hints = self._hints.of(pods, drain_node.name)
            search = replace(self._way, pointer=pointer, allowed=self._allowed, hints=hints, budget=None)
            placement = place(snapshot, sorted(pods, key=lambda pod: of(pod).anew.rank), search)
            nodes_without_rooms = self._unplaced_reasons(placement.unplaced, self._allowed, drain_node.name)
        lost = {
            of(pod).anew: nodes_without_rooms[pod.metadata.uid]
            for pod in pods
            if pod.metadata.uid in nodes_without_rooms
        }
        left = Counter[PodClass](of(pod).anew for pod in pods if pod.metadata.uid in nodes_without_rooms)
        for pod in pods:
            alike = of(pod).anew
            if left[alike]:
                left[alike] -= 1
                yield drain_node.reason(PodWithoutPlace(pod=pod_ref(pod), node=drain_node.name, ruled_out=lost[alike]))
