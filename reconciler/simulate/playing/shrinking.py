"""A play that fails is made smaller, as long as it still fails in the same way: what is left is what matters.

Parts are dropped, counts halved and the end brought nearer, again and again until nothing more can go.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from reconciler.model.quantity import Duration
from reconciler.report.simulated.simulated import Simulated
from reconciler.simulate.playing.play import Play
from reconciler.simulate.scenario.spec import Scenario
from reconciler.simulate.scenario.workload import Workload

MOST_TRIES = 200
_LEAST_MS = 60_000

T = TypeVar("T")
Fails = Callable[[Play], bool]


def how_it_fails(simulated: Simulated) -> frozenset[str]:
    """The rules that were broken; where none was, the expectations that were not met."""
    broken = frozenset(each.rule for each in simulated.broken)
    return broken or frozenset(each.told for each in simulated.expectations if not each.is_met)


def shrink(play: Play, fails: Fails, most_tries: int = MOST_TRIES) -> Play:
    """The smallest that was found; the play itself where nothing can go."""
    tries = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(play):
            if tries >= most_tries:
                return play
            tries += 1
            if fails(smaller):
                play, is_smaller = smaller, True
                break
    return play


def _smaller(play: Play) -> Iterator[Play]:
    """Each a little smaller; what takes away most comes first."""
    scenario = play.scenario
    for field in ("workloads", "faults", "edits"):
        items = getattr(scenario, field)
        for kept in _without(items):
            yield _with(play, **{field: kept})
    for kept in _without(scenario.cluster.nodes):
        yield _with(play, cluster=msgspec.structs.replace(scenario.cluster, nodes=kept))
    for number in range(1, len(play.revisions)):
        revisions = [each for at, each in enumerate(scenario.policies) if at != number]
        left = tuple(each for at, each in enumerate(play.revisions) if at != number)
        yield msgspec.structs.replace(_with(play, policies=revisions), revisions=left)
    yield from _shorter(play)
    yield from _halved(play)


def _without(items: list[T]) -> Iterator[list[T]]:
    """Half of them, then each by itself."""
    if len(items) > 2:
        middle = len(items) // 2
        yield items[middle:]
        yield items[:middle]
    for number in range(len(items)):
        yield items[:number] + items[number + 1 :]


def _shorter(play: Play) -> Iterator[Play]:
    duration_ms = play.scenario.duration.milliseconds
    for left_ms in (duration_ms // 2, duration_ms * 3 // 4, duration_ms * 9 // 10):
        if left_ms >= _LEAST_MS:
            yield _with(play, duration=Duration(left_ms - left_ms % 1_000))


def _halved(play: Play) -> Iterator[Play]:
    scenario = play.scenario
    for at, group in enumerate(scenario.cluster.nodes):
        if group.count > 1:
            nodes = [*scenario.cluster.nodes]
            nodes[at] = msgspec.structs.replace(group, count=group.count // 2)
            yield _with(play, cluster=msgspec.structs.replace(scenario.cluster, nodes=nodes))
    for at, workload in enumerate(scenario.workloads):
        smaller = _half(workload)
        if smaller is not None:
            workloads = [*scenario.workloads]
            workloads[at] = smaller
            yield _with(play, workloads=workloads)


_COUNTS = (
    ("constant", "pods"),
    ("steady", "per_hour"),
    ("diurnal", "per_hour"),
    ("bursts", "jobs"),
    ("mix", "per_day"),
)


def _half(workload: Workload) -> Workload | None:
    for way, field in _COUNTS:
        found = getattr(workload, way)
        if found is not None and getattr(found, field) > 1:
            halved = msgspec.structs.replace(found, **{field: getattr(found, field) // 2})
            return msgspec.structs.replace(workload, **{way: halved})
    return None


def _with(play: Play, **changes: object) -> Play:
    scenario: Scenario = msgspec.structs.replace(play.scenario, **changes)
    return msgspec.structs.replace(play, scenario=scenario)
