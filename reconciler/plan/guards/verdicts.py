"""What a guard says to a plan: its limits and what there is of each, and what would let pass what it holds."""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model.plan.guard_verdict import GuardCount, GuardVerdict, Needed
from reconciler.plan.guards.panel import GuardPanel, Held
from reconciler.plan.guards.reasons import OverPlanLimit
from reconciler.plan.guards.sums import FIELDS, limit_of
from reconciler.plan.guards.tally import GuardTally


def guarded_of(panel: GuardPanel, tally: GuardTally, *, would: bool = False) -> GuardVerdict:
    """What one guard of a panel says; of pools that only observe, nothing is held."""
    held = panel.held_by(tally)
    causes = {take.cause for take in panel.takes if take.at in panel.held and panel.held[take.at].tally is tally}
    plan = tuple(
        msgspec.structs.replace(each, parts=tally.parts(each.measure)) for each in tally.counts("plan", tally.plan)
    )
    waits = [each.room.until for each in held]
    return GuardVerdict(
        guard=tally.guard.name,
        origin=tally.guard.origin(),
        counts=(*plan, *_hour(tally)),
        held=0 if would else len(held),
        would=would,
        until=None if None in waits else max((each for each in waits if each is not None), default=None),
        approvals=tuple(sorted(panel.approvals.get(tally.guard.name, ()))),
        needed=_needed(tally, held),
        needed_objects=tuple(sorted({f"{kind}/{name}" for cause in causes for kind, name in cause.policies})),
        needed_losses=tuple(sorted({cause.lost for cause in causes if cause.lost})),
        alone=tuple(_alone(panel, tally)) if any(each.why is OverPlanLimit for each in held) else (),
        by_the_hour=tuple(_by_the_hour(panel, tally)) if any(each.why is OverPlanLimit for each in held) else (),
    )


def _hour(tally: GuardTally) -> Iterator[GuardCount]:
    """What others took is told apart: nobody here can do anything about it."""
    others = [each for each in tally.window if not each.own]
    ours = [each for each in tally.window if each.own]
    for each in tally.counts("hour", tally.hour_with_plan):
        parts = (
            ("before this plan", tally.hour_of(ours).amount(each.measure)),
            ("by Karpenter or a person", tally.hour_of(others).amount(each.measure)),
        )
        counts = tuple((part, count) for part, count in parts if count and each.measure != "removed_percent")
        before = tally.hour_of(tally.window).amount(each.measure)
        yield msgspec.structs.replace(each, before=before, parts=counts)


def _needed(tally: GuardTally, held: Sequence[Held]) -> Needed:
    """Ceilings that cover the whole plan, and what an approval has let pass in the hour besides."""
    found: dict[str, int] = {}
    for each in (each for one in held for each in one.room.over):
        used = tally.used_by_approval(each.measure) if each.period == "hour" else 0
        found[each.measure] = max(found.get(each.measure, 0), tally.plan.amount(each.measure) + used)
    return Needed(**found)


def _alone(panel: GuardPanel, tally: GuardTally) -> Iterator[str]:
    """What would pass if it were all of the plan, where the plan is more than that."""
    titles = dict.fromkeys(take.title for take in panel.takes if tally.own(take))
    for title in titles if len(titles) > 1 else ():
        marks = {each.mark for take in panel.takes if take.title == title for each in tally.own(take)}
        if not tally.sum_of(marks).over(tally.guard.spec.per_plan):
            yield title


def _by_the_hour(panel: GuardPanel, tally: GuardTally) -> Iterator[str]:
    """The limits that the plan exceeds as a whole, where nothing of it does so by itself: maxRemovedPercent: 20."""
    limits = tally.guard.spec.per_plan
    if any(tally.sum_of(each.mark for each in tally.own(take)).over(limits) for take in panel.takes):
        return
    for measure in tally.plan.over(limits):
        limit = limit_of(limits, measure)
        if limit:
            yield f"{FIELDS[measure]}: {limit}"
