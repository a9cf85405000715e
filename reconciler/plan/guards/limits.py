"""Judgement of a plan by all guards: decisions that a guard holds become Holds, and the others go on."""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import later
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Decision, Delete, Hold, Reason, Ref
from reconciler.model.plan.guard_verdict import DisruptionRecord, GuardCount, GuardVerdict, Needed
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.causes import Cause, cause_of
from reconciler.plan.guards.admission import is_elsewhere
from reconciler.plan.guards.approvals import Approvals
from reconciler.plan.guards.ledger import FIELDS, HOUR_MS, DisruptionLedger, DisruptionSums, Roll, limit_of
from reconciler.plan.guards.reasons import (
    BehindOthers,
    FollowsHeld,
    HeldByGuard,
    HourIsFull,
    OverHourLimit,
    OverPlanLimit,
    guard_ref,
    sum_of,
)
from reconciler.plan.guards.removals import GuardContext, taken
from reconciler.plan.guards.tally import Books, GuardHeadroom, GuardTally, Take

# --- All guards on one plan: what they hold, and what they admit.


class Held(msgspec.Struct, frozen=True):
    """The guard that holds a decision, and why."""

    tally: GuardTally
    room: GuardHeadroom
    why: type[HeldByGuard]


class GuardPanel:
    """All guards. Each guard checks the plan as a whole, then each take that no guard holds yet. Mutable."""

    def __init__(self, tallies: Sequence[GuardTally], takes: Sequence[Take]) -> None:
        self.tallies = tuple(tallies)
        self.takes = tuple(takes)
        self.held: dict[int, Held] = {}  # by index of the decision
        self.marks: list[DisruptionRecord] = []  # records of admitted takes
        self.approvals: dict[str, set[str]] = {}  # by guard, approvals that admitted a take
        for tally in self.tallies:
            self._look_at_the_plan(tally)
        for take in self.takes:
            if take.at not in self.held:
                self._look_at_the_hour(take)

    def held_by(self, tally: GuardTally) -> list[Held]:
        return [each for each in self.held.values() if each.tally is tally]

    def _look_at_the_plan(self, tally: GuardTally) -> None:
        tally.count(self.takes)
        room = tally.judge_plan()
        if room.approvals:
            self.approvals[tally.guard.name] = set(room.approvals)
        if room.is_free:
            return
        for take in self.takes:
            if tally.own(take):
                self.held.setdefault(take.at, Held(tally, room, OverPlanLimit))

    def _look_at_the_hour(self, take: Take) -> None:
        guarding = [tally for tally in self.tallies if tally.own(take)]
        passed: dict[str, tuple[str, ...]] = {}
        for tally in guarding:
            room = tally.room(take)
            if not room.is_free:
                self.held[take.at] = Held(tally, room, _why(room))
                return
            of_plan = self.approvals.get(tally.guard.name, set())
            passed[tally.guard.name] = room.approvals or tuple(sorted(of_plan.intersection(tally.covering(take))))
        for tally in guarding:
            tally.admit(take, passed[tally.guard.name])
        for guard, approvals in passed.items():
            self.approvals.setdefault(guard, set()).update(approvals)
        names = tuple(sorted({name for approvals in passed.values() for name in approvals}))
        if guarding:
            self.marks += [msgspec.structs.replace(each.mark, approvals=names) for each in take.taken]


def _why(room: GuardHeadroom) -> type[HeldByGuard]:
    if room.until is None:
        return OverHourLimit
    return HourIsFull if room.over else BehindOthers


class Proposed(msgspec.Struct, frozen=True):
    """Decisions of the planners, after admission."""

    decisions: tuple[Decision, ...]
    consequences: tuple[Consequence, ...] = ()


class GuardedDecisions(msgspec.Struct, frozen=True):
    """Decisions after the guards, the verdict of each guard, and all records to remember."""

    decisions: tuple[Decision, ...]
    guarded: tuple[GuardVerdict, ...] = ()
    marks: tuple[DisruptionRecord, ...] = ()


def judge(inputs: Inputs, fleet: Fleet, proposed: Proposed) -> GuardedDecisions:
    """Judge a plan. Without guards there are no limits and no new records; existing records are kept, because a guard
    may return within the hour.
    """
    if not inputs.desired.guards:
        before = inputs.memory.marks
        marks = DisruptionLedger(GuardContext(fleet, inputs), before, frozenset()).marks if before else ()
        return GuardedDecisions(following(proposed.decisions), marks=marks)
    stage = GuardContext(fleet, inputs, proposed.consequences)
    ledger = DisruptionLedger(stage, inputs.memory.marks, frozenset(each.name for each in inputs.desired.pools))
    books = Books(ledger, Roll(fleet), Roll(fleet, later(inputs.now, -HOUR_MS)), inputs.now)
    approvals = Approvals(inputs)
    real, guard_panel = (
        GuardPanel(_tallies(inputs, books, approvals), _takes(inputs, stage, ledger, proposed.decisions, would=would))
        for would in (False, True)
    )
    decisions = tuple(_held(each, real.held.get(at)) for at, each in enumerate(proposed.decisions))
    guard_verdicts = [guarded_of(real, tally) for tally in real.tallies]
    imagined = (guarded_of(guard_panel, tally, would=True) for tally in guard_panel.tallies if guard_panel.takes)
    guard_verdicts += [each for each in imagined if each.exceeded]
    return GuardedDecisions(following(decisions), tuple(guard_verdicts), ledger.with_taken(real.marks))


def _tallies(inputs: Inputs, books: Books, approvals: Approvals) -> list[GuardTally]:
    guards = [each for each in inputs.desired.guards if not each.spec.suspend and not is_elsewhere(inputs, each)]
    return [GuardTally(books, each, approvals.for_guard(each.name)) for each in guards]


def _takes(
    inputs: Inputs, stage: GuardContext, ledger: DisruptionLedger, decisions: Sequence[Decision], *, would: bool
) -> tuple[Take, ...]:
    """Takes that do not count already. A pod whose node is taken in the same plan counts with the node."""
    found = [
        (at, each, [one for one in taken(stage, each) if one.weighs and not ledger.counts_already(one.mark)])
        for at, each in enumerate(decisions)
        if each.would == would
    ]
    nodes = {one.mark.name: one for _, _, several in found for one in several if one.mark.kind == "Node"}
    counted = _counted_nodes(stage, ledger) if any(one.node for _, _, several in found for one in several) else ()
    takes = []
    causes: dict[tuple[str, str, str], Cause] = {}
    for at, decision, several in found:
        own = tuple(nodes.get(one.node, one) for one in several if one.node not in counted)
        if own:
            deleted = decision.subject.title if isinstance(decision.act, Delete) else ""
            alike = (decision.planner, decision.pool, deleted)
            if alike not in causes:
                causes[alike] = cause_of(inputs.desired, decision)
            takes.append(Take(at, _title(decision), own, causes[alike]))
    return tuple(takes)


def _counted_nodes(stage: GuardContext, ledger: DisruptionLedger) -> frozenset[str]:
    """Nodes whose GPUs in use count already."""
    return frozenset(each.name for each in ledger.marks if each.kind == "Node" and each.gpus and stage.is_leaving(each))


def _title(decision: Decision) -> str:
    """Title of a change for people: an edit by its object, and all decisions of a planner about a pool together."""
    if decision.subject.kind == "NodePool":
        return decision.subject.title
    return f"{decision.planner} of {decision.pool}" if decision.pool else decision.planner


def _held(decision: Decision, held: Held | None) -> Decision:
    if held is None:
        return decision
    room, guard = held.room, held.tally.guard
    origin = room.over[0].origin if room.over else guard.origin("spec.perHour")
    # Without the origin: the same hold in the base may have another line.
    reason = Reason(decision.reason.facts)
    facts = held.why(guard=guard_ref(guard.name), held=reason, sums=tuple(map(sum_of, room.over)))
    return msgspec.structs.replace(decision, act=Hold(room.until), reason=Reason(facts, origin))


def following(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Hold decisions that must follow a held decision, transitively."""
    held = {each.subject for each in decisions if isinstance(each.act, Hold)}
    if not held or not any(each.after for each in decisions):
        return tuple(decisions)
    while True:
        followers = [each for each in decisions if not isinstance(each.act, Hold) and not held.isdisjoint(each.after)]
        if not followers:
            return tuple(decisions)
        decisions = [_behind(each, held) if each in followers else each for each in decisions]
        held |= {each.subject for each in followers}


def _behind(decision: Decision, held: set[Ref]) -> Decision:
    other = next(each for each in decision.after if each in held)
    reason = Reason(FollowsHeld(object=decision.subject, other=other), decision.reason.origin)
    return msgspec.structs.replace(decision, act=Hold(), reason=reason)


# --- Verdict of a guard about a plan: its limits, the amounts, and what would admit the held decisions.


def guarded_of(panel: GuardPanel, tally: GuardTally, *, would: bool = False) -> GuardVerdict:
    """Verdict of one guard of a panel. Report-only decisions are not held."""
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
    """Counts of the hour. Disruptions by others are listed separately, because reconciler can't change them."""
    others = [each for each in tally.window if not each.own]
    ours = [each for each in tally.window if each.own]
    hour_roll = tally.books.hour_roll
    for each in tally.counts("hour", tally.hour_with_plan):
        parts = (
            ("before this plan", DisruptionSums(hour_roll, ours).amount(each.measure)),
            ("by Karpenter or a person", DisruptionSums(hour_roll, others).amount(each.measure)),
        )
        counts = tuple((part, count) for part, count in parts if count and each.measure != "removed_percent")
        before = DisruptionSums(hour_roll, tally.window).amount(each.measure)
        yield msgspec.structs.replace(each, before=before, parts=counts)


def _needed(tally: GuardTally, held: Sequence[Held]) -> Needed:
    """Ceilings that would cover the whole plan, plus what approvals admitted within the hour."""
    found: dict[str, int] = {}
    for each in (each for one in held for each in one.room.over):
        used = tally.used_by_approval(each.measure) if each.period == "hour" else 0
        found[each.measure] = max(found.get(each.measure, 0), tally.plan.amount(each.measure) + used)
    return Needed(**found)


def _alone(panel: GuardPanel, tally: GuardTally) -> Iterator[str]:
    """Titles of changes that would pass alone, if the plan has several."""
    titles = dict.fromkeys(take.title for take in panel.takes if tally.own(take))
    for title in titles if len(titles) > 1 else ():
        marks = {each.mark for take in panel.takes if take.title == title for each in tally.own(take)}
        if not DisruptionSums(tally.books.roll, marks).over(tally.guard.spec.per_plan):
            yield title


def _by_the_hour(panel: GuardPanel, tally: GuardTally) -> Iterator[str]:
    """Limits that the plan exceeds only as a whole, as text: maxRemovedPercent: 20."""
    limits = tally.guard.spec.per_plan
    marks_of_takes = ([each.mark for each in tally.own(take)] for take in panel.takes)
    if any(DisruptionSums(tally.books.roll, marks).over(limits) for marks in marks_of_takes):
        return
    for measure in tally.plan.over(limits):
        limit = limit_of(limits, measure)
        if limit:
            yield f"{FIELDS[measure]}: {limit}"
