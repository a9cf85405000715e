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
from reconciler.fleet.scale_down_simulation import Emptying
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
    site = DrainContext(inputs, draft)
    seen = site.by_name.get(node)
    if seen is None:
        return []
    members, what_if = Members(site), site.fleet.what_if
    trial = rehome(site, eligible(EligibilityContext(site)).order, members)
    with what_if.fork(), what_if.part(GpuClaims).judged(site.claims.pools, site.fleet.lent.keys()):
        return _Asking(site, members, trial.way, seen).asked(trial.order)


def pod_of(reason: Reason) -> Ref | None:
    """The pod that keeps its node; None where none does."""
    return reason.facts.pod if isinstance(reason.facts, PodBlocker) else None


class _Asking(Rehoming):
    """A search that looks closer at one node."""

    def __init__(self, site: DrainContext, members: Members, way: Search, seen: DrainNode) -> None:
        super().__init__(site, members, way)
        self._asked_about = seen
        self._found: list[Reason] | None = None

    def asked(self, order: Sequence[DrainNode]) -> list[Reason]:
        self.run(order)
        return self._blockers() if self._found is None else self._found

    def _refuse_blocked(self, order: Iterable[DrainNode]) -> None:
        """The node is asked about in its turn, whatever keeps it."""
        super()._refuse_blocked(each for each in order if each is not self._asked_about)

    def _try_one(self, seen: DrainNode, emptying: Emptying) -> bool:
        if seen is self._asked_about:
            kept = self._blockers()
            known = set(map(pod_of, kept))
            homeless = self._homeless(emptying.walk.pointer)
            self._found = [*kept, *(each for each in homeless if pod_of(each) not in known)]
        return super()._try_one(seen, emptying)

    def _try_crew(self, crew: GangNodes, crewing: Crewing, emptying: Emptying) -> bool:
        if any(each.name == self._asked_about.name for each in crew.nodes):
            self._found = self._blockers()
        return super()._try_crew(crew, crewing, emptying)

    def _blockers(self) -> list[Reason]:
        """What keeps its pods whatever room there is; each gang is asked about as a whole."""
        site, seen, gangs = self._site, self._asked_about, self._members
        found: list[Reason] = []
        told: set[tuple[str, str]] = set()
        for pod in self._movings.of(self._what_if.rows.row_of[seen.name]).pods:
            gang = site.draft.gangs.of(pod)
            if gang is None or gang in gangs.on_their_way:
                found += filter(None, [blocker(site, self._remaining, seen, pod)])
            elif gang not in told:
                told.add(gang)
                found += [each.to(seen, pod) for each in obstacles(site, gangs, gang, self._remaining.copy())]
        return list(dict.fromkeys(found))

    def _homeless(self, pointer: str) -> Iterator[Reason]:
        """Its pods for which there is no room beside the others; of those that are alike, the first by name."""
        what_if, seen = self._what_if, self._asked_about
        row, of = what_if.rows.row_of[seen.name], what_if.classes.of
        if row in self._takers:
            return
        pods = self._movings.of(row).pods
        with what_if.fork():
            what_if.vacate(row)
            hints = self._hints.of(pods, seen.name)
            search = replace(self._way, pointer=pointer, allowed=self._allowed, hints=hints, budget=None)
            found = place(what_if, sorted(pods, key=lambda pod: of(pod).anew.rank), search)
            told = self._told_unplaced(found.unplaced, self._allowed, seen.name)
        lost = {of(pod).anew: told[pod.metadata.uid] for pod in pods if pod.metadata.uid in told}
        left = Counter[PodClass](of(pod).anew for pod in pods if pod.metadata.uid in told)
        for pod in pods:
            alike = of(pod).anew
            if left[alike]:
                left[alike] -= 1
                yield seen.reason(PodWithoutPlace(pod=pod_ref(pod), node=seen.name, ruled_out=lost[alike]))
