"""Nodes that scaling and drains take away, as consequences like all others; impact/pricing.py prices them.

A node that goes anyway goes so, whatever else would become of it. A node that only this plan would mark goes by its
drift, where it drifts.

A node that stands still (plan/holds/standstill.py) goes nowhere. Of a pool in which nothing is carried out all is told
as what the plan would do: nothing of it comes anyway, and a node that really bears a taint goes at no time.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Cause, Consequence, Fate, Share, summed
from reconciler.plan.drain.blockers import moves
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.cluster_identity import of_another_cluster
from reconciler.plan.guards.observing import inaction_of
from reconciler.plan.impact.drains import NodeDrain, drains
from reconciler.plan.impact.mode_changes import Side
from reconciler.plan.impact.scale_down import departing


class _Departure(msgspec.Struct, frozen=True, gc=False):
    """One node, whichever planner takes it away."""

    pool: str
    fate: Fate
    cause: Cause
    at: Instant | None
    wave: int = 0  # how many nodes of its pool at once; 0: nothing limits them
    seconds: int | None = None  # for one wave; None: not known


def with_departures(own: Side, base: Side | None = None) -> tuple[Side, Side | None]:
    """Both plans, with the nodes that scaling and drains take away among their consequences."""
    departures = _departures(own)
    if base is None:
        standing = frozenset(name for name, each in departures.items() if each.cause == "standing")
        return _with(own, departures, standing), None
    before = _departures(base)
    declared = {pool.name for pool in base.scene.inputs.desired.pools}
    # What the base brings about as well is not caused by the change, whatever this plan does to it.
    entries = {
        name: _caused(each, standing=_comes_anyway(each, before.get(name), is_seen=each.pool in declared))
        for name, each in departures.items()
    }
    return _with(own, entries, frozenset(before)), _with(base, before, frozenset(before))


def _departures(side: Side) -> dict[str, _Departure]:
    """By the name of the node."""
    scene = side.scene
    by_node = {name: _of_drain(each) for name, each in drains(scene).items()}
    for name, each in departing(scene.inputs, scene.plan).items():
        by_node[name] = _Departure(each.pool, "scaled", "standing" if each.is_marked else "change", each.at)
    checked = (
        (name, _as_it_stands(scene, name, each)) for name, each in sorted(by_node.items()) if side.does(each.pool)
    )
    return {name: each for name, each in checked if each is not None}


def _as_it_stands(scene: PlanningResult, node: str, departure: _Departure) -> _Departure | None:
    """The same as far as it is carried out, or would be."""
    standstill = scene.standstills.get(node)
    if of_another_cluster(scene.inputs, departure.pool):
        return None
    if inaction_of(scene.inputs, scene.fleet, departure.pool) is None:
        return departure if standstill is None else None
    return msgspec.structs.replace(departure, cause="change", at=None if standstill else departure.at)


def _of_drain(drain: NodeDrain) -> _Departure:
    is_standing = (drain.has_begun or drain.is_known) and not drain.is_acted_on
    cause: Cause = "standing" if is_standing else "change"
    return _Departure(drain.pool, "drained", cause, drain.begins_at, drain.parallelism, drain.seconds)


def _comes_anyway(departure: _Departure, before: _Departure | None, *, is_seen: bool) -> bool:
    """`is_seen`: the base declares the pool, so that what it would do there is known."""
    if before is None:
        return departure.cause == "standing" and not is_seen
    return before.fate == departure.fate and (departure.fate == "drained" or departure.cause == "standing")


def _caused(departure: _Departure, *, standing: bool) -> _Departure:
    return msgspec.structs.replace(departure, cause="standing" if standing else "change")


def _with(side: Side, departures: Mapping[str, _Departure], anyway: frozenset[str]) -> Side:
    if not departures:
        return side
    scene = side.scene
    drifting = {name for each in scene.plan.consequences if each.fate != "undrifted" for name in each.nodes}
    departs = {name: each for name, each in departures.items() if name in anyway or name not in drifting}
    others = [each.only(name for name in each.nodes if name not in departs) for each in scene.plan.consequences]
    consequences = (*_consequences(scene.fleet, departs), *(each for each in others if each is not None))
    plan = msgspec.structs.replace(scene.plan, consequences=consequences)
    return msgspec.structs.replace(side, scene=msgspec.structs.replace(scene, plan=plan))


def _consequences(fleet: Fleet, departs: Mapping[str, _Departure]) -> Iterator[Consequence]:
    """One a pool, fate and cause."""
    groups: dict[tuple[Fate, str, Cause], dict[str, _Departure]] = {}
    for name, each in departs.items():
        groups.setdefault((each.fate, each.pool, each.cause), {})[name] = each
    # What stands is paid for first, and scaling before drains, as the planners come.
    order = sorted(groups, key=lambda key: (key[0] != "scaled", key[1], key[2] != "standing"))
    for fate, pool, cause in order:
        nodes = groups[fate, pool, cause]
        wave = min((each.wave for each in nodes.values()), default=0)
        like = Consequence(pool, pool, cause, fate, (), 0, 0, 0, 0, wave=wave, seconds=_seconds(nodes.values(), wave))
        yield summed(like, [(name, _share(fleet, name, each)) for name, each in nodes.items()])


def _seconds(nodes: Iterable[_Departure], wave: int) -> int | None:
    seconds = [each.seconds for each in nodes]
    known = [each for each in seconds if each is not None]
    if not wave or len(known) < len(seconds):
        return None
    return -(-len(seconds) // wave) * max(known)


def _share(fleet: Fleet, name: str, departure: _Departure) -> Share:
    node = fleet.node(name)
    gpus = node.gpus if node is not None else 0
    moving = [pod for pod in fleet.pods_on(name) if moves(pod)] if departure.fate == "drained" else []
    in_use = min(gpus, sum(map(fleet.gpu_requests.of, moving)))
    return Share(gpus, in_use, len(moving), 0, 0, (), at=departure.at)
