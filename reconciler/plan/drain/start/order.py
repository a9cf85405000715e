"""In which order candidates begin whose time has come: those first that are worth most, beside those that begin.

Nodes of one pool and one sort of machine save the same, whatever goes beside them. So they stand in a line, those that
lose least in front, and only the first of each line is weighed, again once something went.
"""

from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.plan.drain.candidates import EligibilityContext
from reconciler.plan.drain.gangs.crews import GangNodes
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.timers import since

Place = tuple[Fraction | int, Instant, int]  # what is lost, since when it is a candidate, and which crew it is
Key = tuple[Fraction | int, Fraction | int, Instant, int]


class EqualSavings(msgspec.Struct):
    """Crews that save the same."""

    saves: GangNodes  # as any of them
    places: list[Place] = []  # the first is the last

    def key(self, eligibility: EligibilityContext) -> Key:
        """Of its first; the least is the best."""
        return (-eligibility.worth.saved(self.saves.nodes), *self.places[-1])


def in_drain_order(
    eligibility: EligibilityContext, members: Members, crews: Sequence[GangNodes]
) -> Iterator[GangNodes]:
    """Whoever walks it tells `ground.worth` what goes, before it asks for the next."""
    worth = eligibility.worth
    waiting = [(line.key(eligibility), worth.taken, line) for line in _lines(eligibility, members, crews)]
    heapify(waiting)
    while waiting:
        key, known, line = heappop(waiting)
        if known != worth.taken and (now := line.key(eligibility)) > key:  # what goes meanwhile leaves less to save
            heappush(waiting, (now, worth.taken, line))
            continue
        *_, at = line.places.pop()
        yield crews[at]
        if line.places:
            saves = key[0] if known == worth.taken else line.key(eligibility)[0]
            heappush(waiting, ((saves, *line.places[-1]), worth.taken, line))


def _lines(eligibility: EligibilityContext, members: Members, crews: Sequence[GangNodes]) -> Iterator[EqualSavings]:
    equal_savingses: dict[Hashable, EqualSavings] = {}
    for at, crew in enumerate(crews):
        is_one = len(crew.nodes) == 1 and not crew.gangs
        sort: Hashable = eligibility.worth.sort(crew.nodes[0]) if is_one else at
        line = equal_savingses.get(sort)
        if line is None:
            line = equal_savingses[sort] = EqualSavings(crew)
        oldest = min([since(eligibility.context, each) for each in crew.nodes])
        line.places.append((eligibility.worth.lost(crew.nodes, _elsewhere(members, crew)), oldest, at))
    for line in equal_savingses.values():
        line.places.sort(reverse=True)
        yield line


def _elsewhere(members: Members, crew: GangNodes) -> tuple[Pod, ...]:
    """Pods of its gangs on nodes that stay."""
    if not crew.gangs:
        return ()
    nodes = {each.name for each in crew.nodes}
    return tuple([pod for gang in crew.gangs for pod in members.of[gang] if pod.node not in nodes])
