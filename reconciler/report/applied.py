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
from reconciler.report.blocks import (
    Blank,
    Block,
    Detail,
    Item,
    ItemList,
    ReportNote,
    ReportNotes,
    Section,
    TextLine,
    line,
)
from reconciler.report.decision_text import DecisionText, decision_items
from reconciler.report.document import CheckedCount, Finding, ReportDocument
from reconciler.report.plans.blocked import blocked_titles, hold_findings, reason_lines
from reconciler.report.plans.build import describe_decisions
from reconciler.report.plans.plan_json import decision_json
from reconciler.report.setting import ReportHeader
from reconciler.report.suppressed import conditions

FORMAT_VERSION = 2
TROUBLE = "CycleFailed"
NOT_DONE = "WriteNotDone"
AGAIN = "run it again to finish"
NOTHING = "Nothing to do: the cluster is as the policies want it."


class Applied(msgspec.Struct, frozen=True):
    """A cycle, and what a reader must know beside it."""

    setting: ReportHeader
    cycled: CycleResult
    notices: tuple[str, ...] = ()

    @property
    def outcomes(self) -> dict[Ref, Outcome]:
        return {each.subject: each for each in self.cycled.outcomes}

    @property
    def decision_texts(self) -> tuple[DecisionText, ...]:
        inputs, plan = self.cycled.inputs, self.cycled.plan
        return describe_decisions(inputs, plan.decisions) if plan and inputs else ()

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


def applied_document(applied: Applied) -> ReportDocument:
    """One line where there was nothing to do."""
    findings = tuple(sorted(_findings(applied)))
    return ReportDocument(
        command="apply",
        title=f"Apply of {applied.setting.policies}",
        tool_version=applied.setting.tool_version,
        blocks=tuple(_blocks(applied)),
        payload=_payload(applied),
        otherwise=NOTHING,
        judged=CheckedCount(len({each.decision.subject for each in applied.decision_texts}), "object", "hold"),
        findings=findings,
        annotations=tuple(each for each in findings if each.severity == "error"),
    )


def _findings(applied: Applied) -> Iterator[Finding]:
    """What stopped the cycle, what is held, and writes that were not done."""
    if applied.cycled.trouble:
        yield Finding("", 0, 0, TROUBLE, applied.cycled.trouble)
    yield from hold_findings(each for each in applied.decision_texts if each.held and not is_at_rest(each.decision))
    outcomes = applied.outcomes
    for decision_text in applied.decision_texts:
        decision, outcome = decision_text.decision, outcomes.get(decision_text.decision.subject)
        if decision_text.held or decision.would or (outcome is not None and outcome.result == "done"):
            continue
        origin = decision.reason.origin
        file, number = (origin.file, origin.line) if origin else ("", 0)
        yield Finding(file, number, 0, NOT_DONE, _why_not(outcome), subject=decision.subject.title)


def _blocks(applied: Applied) -> Iterator[Block]:
    yield from reason_lines(each for each in applied.decision_texts if each.blocks)
    notes = [ReportNote("error", applied.cycled.trouble)] if applied.cycled.trouble else []
    notes += [ReportNote("note", each) for each in applied.notices]
    if notes:
        yield ReportNotes(tuple(notes))
    acted = [each for each in applied.decision_texts if not each.held and not each.decision.would]
    rest = [
        each for each in applied.decision_texts if (each.held and not is_at_rest(each.decision)) or each.decision.would
    ]
    if not acted and not rest:
        if not applied.cycled.trouble:
            yield line(NOTHING, "good")
        return
    yield line(applied.setting.headline)
    if acted:
        yield Blank()
        yield ItemList(tuple(_items(applied, acted)))
    if rest:
        yield Blank()
        yield Section("Not done", (ItemList(tuple(decision_items(rest, applied.setting.now))),))
    yield Blank()
    yield _totals(applied, rest)


def _items(applied: Applied, acted: list[DecisionText]) -> Iterator[Item]:
    """Every write, however many are alike: what was done must be found here."""
    outcomes: Mapping[Ref, Outcome] = applied.outcomes
    for decision_text in acted:
        outcome = outcomes.get(decision_text.decision.subject)
        details = [Detail(decision_text.sentence), *(Detail(each.words) for each in decision_text.edited)]
        if outcome is None or outcome.result != "done":
            details.append(Detail(_why_not(outcome), tone="bad"))
        is_done = outcome is not None and outcome.result == "done"
        verb = type(decision_text.decision.act).__name__.lower()
        title = f"{verb} {decision_text.decision.subject.title}"
        yield Item("+" if is_done else "!", title, decision_text.place, tuple(details), "good" if is_done else "bad")


def _why_not(outcome: Outcome | None) -> str:
    if outcome is None:
        return "not done: nothing was sent"
    return f"{outcome.result}: {outcome.detail}" if outcome.detail else outcome.result


def _totals(applied: Applied, rest: Sequence[DecisionText]) -> TextLine:
    """What would be done in a pool that is only observed is not held."""
    lines = [f"{applied.done} done"]
    if applied.not_done:
        lines.append(f"{applied.not_done} not done: {AGAIN}")
    if held := sum(each.held_by_someone for each in rest):
        lines.append(f"{held} held")
    if waiting := sum(each.waits for each in rest):
        lines.append(f"{waiting} waiting")
    supposed = Counter(each.observation for each in rest if not each.held and each.observation is not None)
    lines += [f"{number} would be if {clause}" for number, clause in conditions(supposed)]
    return line(", ".join(lines), "warn" if applied.not_done else "plain")


def _payload(applied: Applied) -> dict[str, Any]:
    cycled = applied.cycled
    entries: dict[str, Any] = msgspec.to_builtins(
        {
            "format_version": FORMAT_VERSION,
            "digest": cycled.plan.digest if cycled.plan else None,
            "trouble": cycled.trouble,
            "outcomes": cycled.outcomes,
            "blocked": blocked_titles(applied.decision_texts),
            "decisions": [decision_json(each) for each in applied.decision_texts],
        }
    )
    return entries
