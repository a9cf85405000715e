"""What a plan does to the fleet: nodes that Karpenter, scaling and drains take away, nodes that are bought, and money.

A plan says what Karpenter does to the nodes of NodePools that it edits or deletes. What our own planners do to nodes,
now and later, is added here as consequences of the same form. Then all are priced together.
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


# --- What drains that begin later will take of the limits of guards.
#
# A drain begins only as far as the limits of a guard allow (plan/drain/batch.py), so candidates of drains never exceed
# a limit together. A reader of a plan still has to know how much is to come. A node that exceeds a limit all by itself
# is held by the guard once its timer is over.


def with_expected(scene: PlanningResult) -> PlanningResult:
    """What each guard says to the plan, with what drains will take later. Where that is more than a limit allows, it is
    not known how long the drains take. `scene`: with what drains take away among its consequences."""
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
    """Whether drains take more than a limit allows at once."""
    return any(each.expected and each.counted + each.expected > each.allowed for each in guarded.counts)


def _marks(scene: PlanningResult) -> Iterator[DisruptionRecord]:
    """Of each node that a drain empties later, and that does not count already."""
    now = scene.inputs.now
    stage = GuardContext(scene.fleet, scene.inputs)
    ledger = DisruptionLedger(stage, scene.plan.memory.marks, frozenset())
    for each in drains(scene).values():
        node = scene.fleet.node(each.node)
        is_later = not each.has_begun and each.begins_at is not None and each.begins_at > now
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
