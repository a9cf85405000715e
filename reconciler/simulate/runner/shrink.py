"""Shrinks a failing play while it still fails in the same way.

Parts are removed, counts halved and the duration shortened, until no further reduction is possible.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from reconciler.model.plan.memory import Memory
from reconciler.model.quantity import Duration
from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.play import Play
from reconciler.simulate.scenario.cluster import ScenarioWorkload
from reconciler.simulate.scenario.spec import Scenario

MOST_TRIES = 200
_LEAST_MS = 60_000

T = TypeVar("T")
Fails = Callable[[Play], bool]


def how_it_fails(simulated: Simulated) -> frozenset[str]:
    """The violated invariants; if there are none, the failed expectations."""
    broken = frozenset(each.rule for each in simulated.broken)
    return broken or frozenset(each.text for each in simulated.expectations if not each.is_met)


def shrink(play: Play, fails: Fails, most_tries: int = MOST_TRIES) -> Play:
    """The smallest failing play found; the play itself if it cannot be reduced."""
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
    """Slightly smaller plays, largest reduction first."""
    scenario = play.scenario
    for field in ("workloads", "faults", "edits", "expect"):
        items = getattr(scenario, field)
        for kept in _without(items):
            yield _with(play, **{field: kept})
    for field in ("nodes", "objects"):
        for kept in _without(getattr(scenario.cluster, field)):
            yield _with(play, cluster=msgspec.structs.replace(scenario.cluster, **{field: kept}))
    yield from _without_files(play)
    for number in range(1, len(play.revisions)):
        revisions = scenario.policies[:number] + scenario.policies[number + 1 :]
        left = play.revisions[:number] + play.revisions[number + 1 :]
        yield msgspec.structs.replace(_with(play, policies=revisions), revisions=left)
    duration_ms = scenario.duration.milliseconds
    for left_ms in (duration_ms // 2, duration_ms * 3 // 4, duration_ms * 9 // 10):
        if left_ms >= _LEAST_MS:
            yield _with(play, duration=Duration(left_ms - left_ms % 1_000))
    yield from _halved(play)


def _without_files(play: Play) -> Iterator[Play]:
    """Replaces the files of a trace or dump by a generated cluster."""
    cluster = play.scenario.cluster
    if cluster.openb_nodes:
        without = _with(play, cluster=msgspec.structs.replace(cluster, openb_nodes=""))
        yield msgspec.structs.replace(without, machines=())
    if cluster.dump:
        without = _with(play, cluster=msgspec.structs.replace(cluster, dump=""))
        yield msgspec.structs.replace(without, observed=None, memory=Memory())


def _replaced(items: list[T], at: int, new: T) -> list[T]:
    return [*items[:at], new, *items[at + 1 :]]


def _without(items: list[T]) -> Iterator[list[T]]:
    """Without each half, then without each single item."""
    if len(items) > 2:
        middle = len(items) // 2
        yield items[middle:]
        yield items[:middle]
    for number in range(len(items)):
        yield items[:number] + items[number + 1 :]


def _halved(play: Play) -> Iterator[Play]:
    """With half of one count, or without the repetition of a fault."""
    scenario = play.scenario
    for at, group in enumerate(scenario.cluster.nodes):
        if group.count > 1:
            nodes = _replaced(scenario.cluster.nodes, at, msgspec.structs.replace(group, count=group.count // 2))
            yield _with(play, cluster=msgspec.structs.replace(scenario.cluster, nodes=nodes))
    for at, workload in enumerate(scenario.workloads):
        for smaller in _halves(workload):
            yield _with(play, workloads=_replaced(scenario.workloads, at, smaller))
    for field in ("faults", "edits"):
        items = getattr(scenario, field)
        for at, each in enumerate(items):
            if each.count > 1:
                fewer = msgspec.structs.replace(each, count=each.count // 2)
                yield _with(play, **{field: _replaced(items, at, fewer)})
    for at, fault in enumerate(scenario.faults):
        if fault.every is not None:
            once = msgspec.structs.replace(fault, every=None)
            yield _with(play, faults=_replaced(scenario.faults, at, once))


# With the minimum number of each.
_COUNTS = (
    ("constant", "pods", 1),
    ("inference", "least", 0),
    ("inference", "most", 1),
    ("steady", "per_hour", 1),
    ("diurnal", "per_hour", 1),
    ("bursts", "jobs", 1),
    ("gangs", "pods", 2),
    ("gangs", "per_day", 1),
    ("mix", "per_day", 1),
)


def _halves(workload: ScenarioWorkload) -> Iterator[ScenarioWorkload]:
    for way, field, least in _COUNTS:
        found = getattr(workload, way)
        if found is not None and getattr(found, field) > least:
            halved = msgspec.structs.replace(found, **{field: max(least, getattr(found, field) // 2)})
            if halved != found and not (way == "inference" and halved.least > halved.most):
                yield msgspec.structs.replace(workload, **{way: halved})


def _with(play: Play, **changes: object) -> Play:
    scenario: Scenario = msgspec.structs.replace(play.scenario, **changes)
    return msgspec.structs.replace(play, scenario=scenario)
