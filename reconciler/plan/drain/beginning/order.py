"""In which order candidates begin whose time has come: those first that are worth most, beside those that begin."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.plan.drain.beginning.worth import Key
from reconciler.plan.drain.candidates import Ground
from reconciler.plan.drain.gangs.crews import Crew
from reconciler.plan.drain.gangs.members import Members
from reconciler.plan.drain.timers import due_at, since


def in_turn(ground: Ground, members: Members, crews: Sequence[Crew]) -> Iterator[Crew]:
    """First those that are not due. Whoever walks it tells `ground.worth` what goes, before it asks for the next."""
    due: list[Crew] = []
    for crew in crews:
        if all(due_at(ground.site, each) <= ground.site.now for each in crew.nodes):
            due.append(crew)
        else:
            yield crew
    waiting = [(_key(ground, members, crew), at) for at, crew in enumerate(due)]
    known = dict.fromkeys(range(len(due)), ground.worth.taken)
    heapify(waiting)
    while waiting:
        key, at = heappop(waiting)
        is_known = known[at] == ground.worth.taken
        now = key if is_known else _key(ground, members, due[at])
        if now > key:  # what goes meanwhile leaves less to save
            known[at] = ground.worth.taken
            heappush(waiting, (now, at))
        else:
            yield due[at]


def _key(ground: Ground, members: Members, crew: Crew) -> tuple[Key, Instant]:
    """Of those that are worth the same the oldest candidates begin."""
    oldest = min(since(ground.site, each) for each in crew.nodes)
    return ground.worth.key(crew.nodes, _elsewhere(members, crew)), oldest


def _elsewhere(members: Members, crew: Crew) -> tuple[Pod, ...]:
    """Pods of its gangs on nodes that stay."""
    nodes = {each.name for each in crew.nodes} if crew.gangs else set()
    return tuple([pod for gang in crew.gangs for pod in members.of[gang] if pod.node not in nodes])
