"""Nodes that leave because a pool has more than it needs, as consequences: billed and told like all others.

A node that goes anyway goes so, whatever else would become of it; one that only this plan would mark goes by its drift,
where it drifts.
"""

from collections.abc import Iterator, Mapping

import msgspec

from reconciler.model.planned.consequence import Cause, Consequence, Share, summed
from reconciler.plan.karpenter.savings import priced_by
from reconciler.plan.kept.scene import Scene
from reconciler.plan.scaling.departing import Departing, departing


def with_scaled(scene: Scene, base: Scene | None) -> tuple[Scene, Scene | None]:
    """Both plans, with what they scale down among their consequences."""
    going, before = departing(scene.inputs, scene.plan), departing(base.inputs, base.plan) if base else {}
    anyway = frozenset(before) if base else frozenset(name for name, each in going.items() if each.is_marked)
    told_base = _told(base, before, frozenset(before)) if base else None
    return _told(scene, going, anyway), told_base


def _told(scene: Scene, going: Mapping[str, Departing], anyway: frozenset[str]) -> Scene:
    if not going:
        return scene
    drifting = {name for each in scene.plan.consequences if each.fate != "undrifted" for name in each.nodes}
    scaled = [name for name in going if name in anyway or name not in drifting]
    others = [_without(each, frozenset(scaled)) for each in scene.plan.consequences]
    found = (*_consequences(scene, going, scaled), *(each for each in others if each is not None))
    pools = {pool.name: pool for pool in scene.inputs.desired.pools}
    priced = priced_by(pools, found, scene.fleet, scene.inputs.now)
    return msgspec.structs.replace(scene, plan=msgspec.structs.replace(scene.plan, consequences=priced))


def _without(consequence: Consequence, scaled: frozenset[str]) -> Consequence | None:
    return consequence.only(name for name in consequence.nodes if name not in scaled)


def _consequences(scene: Scene, going: Mapping[str, Departing], scaled: list[str]) -> Iterator[Consequence]:
    """One a pool, of those marked before and of those that are to be."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for name in scaled:
        groups.setdefault((going[name].pool, going[name].is_marked), []).append(name)
    for (pool, is_marked), nodes in sorted(groups.items()):
        cause: Cause = "standing" if is_marked else "change"
        like = Consequence(pool, pool, cause, "scaled", (), 0, 0, 0, 0)
        yield summed(like, [(name, _share(scene, name)) for name in nodes])


def _share(scene: Scene, name: str) -> Share:
    node = scene.fleet.node(name)
    return Share(node.gpus if node else 0, 0, 0, 0, 0, ())
