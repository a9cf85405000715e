"""One action a subject: which of several waits for the next plan.

A label can wait for whatever else is done to its subject. Of all other actions the first planner's goes on, and a later
planner's is held at the door. The labels are decided after the guards: where a guard holds the other action, the label
is put on.
"""

from collections.abc import Sequence

import msgspec

from reconciler.model.plan.action import Hold, Label, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import CodeFacts, Reason


class TakesTurns(CodeFacts, frozen=True):
    template = (
        "{other} acts on {object} in this plan, and a plan has one action a subject: {planner} follows in the next "
        "plan."
    )

    object: Ref
    other: str  # the planner that acts
    planner: str  # the one that waits


REASONS = (TakesTurns,)


def waits_for(decision: Decision, other: str) -> Reason:
    """Why a decision waits for the action of another planner."""
    facts = TakesTurns(object=decision.subject, other=other, planner=decision.planner)
    return Reason(facts, decision.reason.origin)


def one_action_each(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """The same decisions, with the labels held whose subjects have another action, or an earlier label."""
    labels = {each.subject for each in decisions if isinstance(each.act, Label)}
    if not labels:
        return tuple(decisions)
    acts: dict[Ref, Decision] = {}
    for each in decisions:
        if each.subject in labels and not isinstance(each.act, Hold) and _goes_before(each, acts.get(each.subject)):
            acts[each.subject] = each
    return tuple(_settled(each, acts.get(each.subject)) for each in decisions)


def _goes_before(decision: Decision, other: Decision | None) -> bool:
    return other is None or (isinstance(other.act, Label) and not isinstance(decision.act, Label))


def _settled(decision: Decision, acts: Decision | None) -> Decision:
    if acts is None or acts is decision or isinstance(decision.act, Hold):
        return decision
    return msgspec.structs.replace(decision, act=Hold(), reason=waits_for(decision, acts.planner))
