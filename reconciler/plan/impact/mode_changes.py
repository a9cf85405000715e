"""Pools in which only one of two plans acts: a change sets mode, or suspends a pool, or takes that back.

A plan tells what it would do in pools that only observe, or that are suspended or frozen. Where both plans only tell,
both are told. Where one acts and the other does not, what the other would do is nothing that comes: so a pull request
that sets `mode: Enforce` shows what will be done because of it, and one that suspends a pool what no longer will be.
"""

import msgspec

from reconciler.model.plan.purchase import Stage
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.observing import inaction_of
from reconciler.plan.impact.blame import pool_of

# What others have begun or will begin, and what was asked of them already.
_OTHERS: frozenset[Stage] = frozenset({"machine", "asked", "karpenter"})


class Side(msgspec.Struct, frozen=True):
    """One of two plans, or the only one."""

    scene: PlanningResult
    quiet: frozenset[str] = frozenset()  # pools in which it does not act, and the other does

    def does(self, pool: str, stage: Stage | None = None) -> bool:
        """Whether what it does or would do there is told. `stage`: of a purchase."""
        return pool not in self.quiet or stage in _OTHERS


def sides(scene: PlanningResult, base: PlanningResult | None) -> tuple[Side, Side | None]:
    """Both plans, without what edits of NodePools would do where they only tell."""
    if base is None:
        return Side(scene), None
    declared = {pool.name for pool in scene.inputs.desired.pools} & {pool.name for pool in base.inputs.desired.pools}
    acts = {name for name in declared if _acts(scene, name)}
    before = {name for name in declared if _acts(base, name)}
    return _side(scene, frozenset(before - acts)), _side(base, frozenset(acts - before))


def _side(scene: PlanningResult, quiet: frozenset[str]) -> Side:
    consequences = tuple(
        each for each in scene.plan.consequences if each.cause == "standing" or pool_of(each) not in quiet
    )
    plan = msgspec.structs.replace(scene.plan, consequences=consequences) if quiet else scene.plan
    return Side(msgspec.structs.replace(scene, plan=plan), quiet)


def _acts(scene: PlanningResult, pool: str) -> bool:
    return inaction_of(scene.inputs, scene.fleet, pool) is None
