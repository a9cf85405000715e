"""Impact of a plan on the fleet: nodes removed by Karpenter, scaling and drains, bought nodes, and cost.

A plan contains the consequences of Karpenter for nodes of edited or deleted NodePools. This module adds the
consequences of our own planners, now and later, in the same form, and prices all of them.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.plan.guard_verdict import DisruptionRecord, GuardCount, GuardVerdict
from reconciler.model.policy.guards import ChangeGuard
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.ledger import DisruptionLedger, DisruptionSums, Roll
from reconciler.plan.guards.observing import observes
from reconciler.plan.guards.removals import GuardContext
from reconciler.plan.impact.blame import sides
from reconciler.plan.impact.departures import drains, with_departures
from reconciler.plan.impact.pricing import Priced, priced
from reconciler.plan.impact.purchases import with_purchases


def with_impact(scene: PlanningResult, base: PlanningResult | None = None) -> Priced:
    """Both plans with all their consequences, and the bills of their pools."""
    own, before = with_purchases(*with_departures(*sides(scene, base)))
    return priced(own.scene, before.scene if before is not None else None)


# --- Expected use of guard limits by later drains.
#
# A drain begins only within the limits of a guard (plan/drain/batch.py), so drain candidates never exceed a limit
# together. Reports still show how many are expected. A node that exceeds a limit alone is held by the guard when its
# timer ends.


def with_expected(scene: PlanningResult) -> PlanningResult:
    """The guards' verdicts with expected later drains. If these exceed a limit, the duration of the drains is unknown.
    `scene` includes the consequences of drains."""
    marks = tuple(_marks(scene)) if scene.plan.guarded else ()
    if not marks:
        return scene
    guards = {each.name: each for each in scene.inputs.desired.guards}
    roll = Roll(scene.fleet)
    guarded = tuple(each if each.would else _with(each, guards[each.guard], marks, roll) for each in scene.plan.guarded)
    delaying = {pool for each in guarded if _delays(each) for pool in guards[each.guard].spec.pool_names}
    consequences = tuple(
        msgspec.structs.replace(each, seconds=None) if each.fate == "drained" and {"*", each.pool} & delaying else each
        for each in scene.plan.consequences
    )
    return msgspec.structs.replace(
        scene, plan=msgspec.structs.replace(scene.plan, guarded=guarded, consequences=consequences)
    )


def _delays(guarded: GuardVerdict) -> bool:
    """Whether drains exceed a limit, and are therefore delayed."""
    return any(each.expected and each.counted + each.expected > each.allowed for each in guarded.counts)


def _marks(scene: PlanningResult) -> Iterator[DisruptionRecord]:
    """Records of nodes that are drained later, and are not counted yet."""
    now = scene.inputs.now
    stage = GuardContext(scene.fleet, scene.inputs)
    ledger = DisruptionLedger(stage, scene.plan.memory.marks, frozenset())
    for name, each in drains(scene).items():
        node = scene.fleet.node(name)
        is_later = not each.has_begun and each.at is not None and each.at > now
        if node is not None and is_later and not observes(scene.inputs, each.pool):
            mark = stage.mark(node, goes=True)
            if not ledger.counts_already(mark):
                yield mark


def _with(
    guarded: GuardVerdict, guard: Declared[ChangeGuard], marks: tuple[DisruptionRecord, ...], roll: Roll
) -> GuardVerdict:
    own = [each for each in marks if {"*", each.pool} & set(guard.spec.pool_names)]
    sums = DisruptionSums(roll, own)
    limits = (guard.spec.per_plan, guard.spec.per_hour)
    too_large = sum(any(DisruptionSums(roll, [each]).over(ceiling) for ceiling in limits) for each in own)
    counts = tuple(_expected(each, sums) for each in guarded.counts)
    return msgspec.structs.replace(guarded, counts=counts, too_large=too_large)


def _expected(count: GuardCount, sums: DisruptionSums) -> GuardCount:
    limit_count = sums.count(count.measure, count.allowed)
    return msgspec.structs.replace(count, expected=limit_count.counted, pool=count.pool or limit_count.pool)
