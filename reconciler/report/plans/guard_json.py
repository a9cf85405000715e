"""Guards and freezes for programs."""

from collections.abc import Sequence

from reconciler.model.instant import timestamp
from reconciler.model.plan.guard_verdict import GuardCount, GuardVerdict
from reconciler.plan.guards.frozen import Freeze
from reconciler.report.plans.plan_shape import FreezeTold, GuardTold, LimitTold


def guards_json(guarded: Sequence[GuardVerdict]) -> list[GuardTold]:
    """Each that is in force here."""
    return [_guard(each) for each in guarded]


def freezes_json(freezes: Sequence[Freeze]) -> list[FreezeTold]:
    """Each that holds now."""
    return [FreezeTold(each.scope_text, each.written, each.reason) for each in freezes]


def _guard(guarded: GuardVerdict) -> GuardTold:
    return GuardTold(
        guard=guarded.guard,
        blocks=guarded.blocks,
        would=guarded.would,
        held=guarded.held,
        until=None if guarded.until is None else timestamp(guarded.until),
        approval=", ".join(guarded.approvals),
        approvals=list(guarded.approvals),
        needed=guarded.needed,
        needed_objects=list(guarded.needed_objects),
        needed_losses=list(guarded.needed_losses),
        alone=list(guarded.alone),
        by_the_hour=list(guarded.by_the_hour),
        too_large=guarded.too_large,
        limits=[_limit(each) for each in guarded.counts],
    )


def _limit(count: GuardCount) -> LimitTold:
    return LimitTold(
        measure=count.measure,
        period=count.period,
        counted=count.counted,
        before=count.before,
        expected=count.expected,
        allowed=count.allowed,
        exceeded=count.exceeded,
        pool=count.pool,
        parts=dict(count.parts),
        file=count.origin.file,
        line=count.origin.line,
    )
