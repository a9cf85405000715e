"""What one cycle did, as a document: each write and what came of it, what was not written and why, and what is held."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.model.plan.action import Hold, Ref
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.outcome import Outcome
from reconciler.plan.holds.resting import is_at_rest
from reconciler.report.blocks import Blank, Block, Detail, Item, Items, Line, Note, Notes, Section, line
from reconciler.report.decision_text import DecisionText, decision_items
from reconciler.report.document import Document, Finding, Judged
from reconciler.report.plans.blocked import blocked_titles, hold_findings, reason_lines
from reconciler.report.plans.build import told_of
from reconciler.report.plans.plan_json import decision_told
from reconciler.report.setting import Setting
from reconciler.report.suppressed import conditions

FORMAT_VERSION = 2
TROUBLE = "CycleFailed"
NOT_DONE = "WriteNotDone"
AGAIN = "run it again to finish"
NOTHING = "Nothing to do: the cluster is as the policies want it."


class Applied(msgspec.Struct, frozen=True):
    """A cycle, and what a reader must know beside it."""

    setting: Setting
    cycled: CycleResult
    notices: tuple[str, ...] = ()

    @property
    def outcomes(self) -> dict[Ref, Outcome]:
        return {each.subject: each for each in self.cycled.outcomes}

    @property
    def told(self) -> tuple[DecisionText, ...]:
        inputs, plan = self.cycled.inputs, self.cycled.plan
        return told_of(inputs, plan.decisions) if plan and inputs else ()

    @property
    def acting(self) -> tuple[Decision, ...]:
        plan = self.cycled.plan
        decisions = plan.decisions if plan else ()
        return tuple(each for each in decisions if not isinstance(each.act, Hold) and not each.would)

    @property
    def done(self) -> int:
        return sum(each.result == "done" for each in self.cycled.outcomes)

    @property
    def not_done(self) -> int:
        return len(self.acting) - self.done


def applied_document(applied: Applied) -> Document:
    """One line where there was nothing to do."""
    findings = tuple(sorted(_findings(applied)))
    return Document(
        command="apply",
        title=f"Apply of {applied.setting.policies}",
        tool_version=applied.setting.tool_version,
        blocks=tuple(_blocks(applied)),
        payload=_payload(applied),
        otherwise=NOTHING,
        judged=Judged(len({each.decision.subject for each in applied.told}), "object", "hold"),
        findings=findings,
        annotations=tuple(each for each in findings if each.severity == "error"),
    )


def _findings(applied: Applied) -> Iterator[Finding]:
    """What stopped the cycle, what is held, and writes that were not done."""
    if applied.cycled.trouble:
        yield Finding("", 0, 0, TROUBLE, applied.cycled.trouble)
    yield from hold_findings(each for each in applied.told if each.held and not is_at_rest(each.decision))
    outcomes = applied.outcomes
    for told in applied.told:
        decision, outcome = told.decision, outcomes.get(told.decision.subject)
        if told.held or decision.would or (outcome is not None and outcome.result == "done"):
            continue
        origin = decision.reason.origin
        file, number = (origin.file, origin.line) if origin else ("", 0)
        yield Finding(file, number, 0, NOT_DONE, _why_not(outcome), subject=decision.subject.title)


def _blocks(applied: Applied) -> Iterator[Block]:
    yield from reason_lines(each for each in applied.told if each.blocks)
    notes = [Note("error", applied.cycled.trouble)] if applied.cycled.trouble else []
    notes += [Note("note", each) for each in applied.notices]
    if notes:
        yield Notes(tuple(notes))
    acted = [each for each in applied.told if not each.held and not each.decision.would]
    rest = [each for each in applied.told if (each.held and not is_at_rest(each.decision)) or each.decision.would]
    if not acted and not rest:
        if not applied.cycled.trouble:
            yield line(NOTHING, "good")
        return
    yield line(applied.setting.headline)
    if acted:
        yield Blank()
        yield Items(tuple(_items(applied, acted)))
    if rest:
        yield Blank()
        yield Section("Not done", (Items(tuple(decision_items(rest, applied.setting.now))),))
    yield Blank()
    yield _totals(applied, rest)


def _items(applied: Applied, acted: list[DecisionText]) -> Iterator[Item]:
    """Every write, however many are alike: what was done must be found here."""
    outcomes: Mapping[Ref, Outcome] = applied.outcomes
    for told in acted:
        outcome = outcomes.get(told.decision.subject)
        details = [Detail(told.sentence), *(Detail(each.words) for each in told.edited)]
        if outcome is None or outcome.result != "done":
            details.append(Detail(_why_not(outcome), tone="bad"))
        is_done = outcome is not None and outcome.result == "done"
        verb = type(told.decision.act).__name__.lower()
        title = f"{verb} {told.decision.subject.title}"
        yield Item("+" if is_done else "!", title, told.place, tuple(details), "good" if is_done else "bad")


def _why_not(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not done: nothing was sent"
    return f"{outcome.result}: {outcome.detail}" if outcome.detail else outcome.result


def _totals(applied: Applied, rest: Sequence[DecisionText]) -> Line:
    """What would be done in a pool that is only observed is not held."""
    told = [f"{applied.done} done"]
    if applied.not_done:
        told.append(f"{applied.not_done} not done: {AGAIN}")
    if held := sum(each.held_by_someone for each in rest):
        told.append(f"{held} held")
    if waiting := sum(each.waits for each in rest):
        told.append(f"{waiting} waiting")
    supposed = Counter(each.observation for each in rest if not each.held and each.observation is not None)
    told += [f"{number} would be if {clause}" for number, clause in conditions(supposed)]
    return line(", ".join(told), "warn" if applied.not_done else "plain")


def _payload(applied: Applied) -> dict[str, Any]:
    cycled = applied.cycled
    told: dict[str, Any] = msgspec.to_builtins(
        {
            "format_version": FORMAT_VERSION,
            "digest": cycled.plan.digest if cycled.plan else None,
            "trouble": cycled.trouble,
            "outcomes": cycled.outcomes,
            "blocked": blocked_titles(applied.told),
            "decisions": [decision_told(each) for each in applied.told],
        }
    )
    return told
