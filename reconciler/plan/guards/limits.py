"""All guards look at all that a plan takes: what one of them holds becomes a Hold, and the rest goes on."""

from collections.abc import Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import later
from reconciler.model.plan.action import Delete, Hold, Ref
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.disruption_record import DisruptionRecord
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Reason
from reconciler.plan.causes import Cause, cause_of
from reconciler.plan.guards.approvals import Approvals
from reconciler.plan.guards.cluster_identity import is_elsewhere
from reconciler.plan.guards.context import GuardContext
from reconciler.plan.guards.ledger import HOUR_MS, DisruptionLedger
from reconciler.plan.guards.panel import GuardPanel, Held
from reconciler.plan.guards.reasons import FollowsHeld, guard_ref, sum_of
from reconciler.plan.guards.removals import taken
from reconciler.plan.guards.sums import Roll
from reconciler.plan.guards.tally import Books, GuardTally, Take
from reconciler.plan.guards.verdicts import guarded_of


class Proposed(msgspec.Struct, frozen=True):
    """What planners came to, mode and others' hands minded already."""

    decisions: tuple[Decision, ...]
    consequences: tuple[Consequence, ...] = ()


class GuardedDecisions(msgspec.Struct, frozen=True):
    """The decisions, held where a guard holds them; what each guard says; and all marks that are to be remembered."""

    decisions: tuple[Decision, ...]
    guarded: tuple[GuardVerdict, ...] = ()
    marks: tuple[DisruptionRecord, ...] = ()


def judge(inputs: Inputs, fleet: Fleet, proposed: Proposed) -> GuardedDecisions:
    """Without a guard there is no limit, and nothing new to remember; what was counted before is kept, for a guard may
    be there again within the hour."""
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
    """What does not count already. A pod whose node is taken in the same plan goes with it."""
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
    """What a person would call the change: an edit by its object, and all that a planner does to a pool together."""
    if decision.subject.kind == "NodePool":
        return decision.subject.title
    return f"{decision.planner} of {decision.pool}" if decision.pool else decision.planner


def _held(decision: Decision, held: Held | None) -> Decision:
    if held is None:
        return decision
    room, guard = held.room, held.tally.guard
    origin = room.over[0].origin if room.over else guard.origin("spec.perHour")
    # Without its place in the policies: the same hold of the base may stem from another line.
    reason = Reason(decision.reason.facts)
    facts = held.why(guard=guard_ref(guard.name), held=reason, sums=tuple(map(sum_of, room.over)))
    return msgspec.structs.replace(decision, act=Hold(room.until), reason=Reason(facts, origin))


def following(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """What is to follow something that is held is held too; and so on."""
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
