"""Report of one cycle: each write with its outcome, what was not written and why, and what is held."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.decision import Decision, Hold, Outcome, PlannerFailure, Ref
from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.holds.classes import is_at_rest
from reconciler.report.decision_line import DecisionGroup, grouped
from reconciler.report.decision_text import DecisionText, conditions, decision_items, place_of
from reconciler.report.document import (
    Blank,
    Block,
    CheckedCount,
    Detail,
    Finding,
    Item,
    ItemList,
    ReportDocument,
    ReportNote,
    ReportNotes,
    Section,
    TextLine,
    line,
)
from reconciler.report.header import ReportHeader
from reconciler.report.plans.build import describe_decisions
from reconciler.report.plans.plan_json import decision_json
from reconciler.report.plans.planned import blocked_titles, hold_findings, reason_lines
from reconciler.report.sentences import sentence
from reconciler.report.wording import visible

FORMAT_VERSION = 2
TROUBLE = "CycleFailed"
NOT_DONE = "WriteNotDone"
AGAIN = "run it again to finish"
NOTHING = "Nothing to do: the cluster matches the policies."


class Applied(msgspec.Struct, frozen=True):
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
    """The document of a cycle; one line if there was nothing to do."""
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
    """The error that stopped the cycle, held decisions, and writes that were not done."""
    if applied.cycled.trouble:
        yield Finding("", 0, 0, TROUBLE, applied.cycled.trouble)
    yield from hold_findings(filter(_is_held, applied.decision_texts))
    outcomes = applied.outcomes
    for decision_text in applied.decision_texts:
        decision, outcome = decision_text.decision, outcomes.get(decision_text.decision.subject)
        if decision_text.held or decision.would or (outcome is not None and outcome.result == "done"):
            continue
        origin = decision.reason.origin
        file, number = (origin.file, origin.line) if origin else ("", 0)
        yield Finding(file, number, 0, NOT_DONE, _why_not(outcome), subject=decision.subject.title)


def _is_held(decision_text: DecisionText) -> bool:
    return decision_text.held and not is_at_rest(decision_text.decision)


def _blocks(applied: Applied) -> Iterator[Block]:
    yield from reason_lines(each for each in applied.decision_texts if each.blocks)
    notes = [ReportNote("error", applied.cycled.trouble)] if applied.cycled.trouble else []
    notes += [ReportNote("note", each) for each in applied.notices]
    if notes:
        yield ReportNotes(tuple(notes))
    acted = [each for each in applied.decision_texts if not each.held and not each.decision.would]
    rest = [each for each in applied.decision_texts if _is_held(each) or each.decision.would]
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
    """One item per write, even if many are equal: the report lists every write."""
    outcomes = applied.outcomes
    for decision_text in acted:
        outcome = outcomes.get(decision_text.decision.subject)
        details = [Detail(decision_text.sentence), *(Detail(each.words) for each in decision_text.edited)]
        is_done = outcome is not None and outcome.result == "done"
        if not is_done:
            details.append(Detail(_why_not(outcome), tone="bad"))
        verb = type(decision_text.decision.act).__name__.lower()
        title = f"{verb} {decision_text.decision.subject.title}"
        yield Item("+" if is_done else "!", title, decision_text.place, tuple(details), "good" if is_done else "bad")


def _why_not(outcome: Outcome | None) -> str:
    return "not done: no request was sent" if outcome is None else outcome_words(outcome)


def outcome_words(outcome: Outcome) -> str:
    return f"{outcome.result}: {outcome.detail}" if outcome.detail else outcome.result


def _totals(applied: Applied, rest: Sequence[DecisionText]) -> TextLine:
    """Totals of the cycle. Suppressed decisions of pools in Observe mode do not count as held."""
    lines = [f"{applied.done} done"]
    if applied.not_done:
        lines.append(f"{applied.not_done} not done: {AGAIN}")
    if held := sum(each.held_by_someone for each in rest):
        lines.append(f"{held} held")
    if waiting := sum(each.waits for each in rest):
        lines.append(f"{waiting} waiting")
    supposed = Counter(each.observation for each in rest if not each.held and each.observation is not None)
    lines += [f"{number} suppressed (would apply if {clause})" for number, clause in conditions(supposed)]
    return line(", ".join(lines), "warn" if applied.not_done else "plain")


def _payload(applied: Applied) -> dict[str, Any]:
    cycled = applied.cycled
    return {
        "format_version": FORMAT_VERSION,
        "digest": cycled.plan.digest if cycled.plan else None,
        "trouble": cycled.trouble,
        "outcomes": msgspec.to_builtins(cycled.outcomes),
        "blocked": blocked_titles(applied.decision_texts),
        "decisions": [msgspec.to_builtins(decision_json(each)) for each in applied.decision_texts],
    }


# --- Log lines of a cycle: one for each decision that differs from the cycle before, and one for each write, as text
# and as fields.

Level = Literal["info", "warning", "error"]


class LogLine(msgspec.Struct, frozen=True):
    """One log line: an event of a closed set, a sentence, and fields for programs."""

    event: str  # decided, gone, written, trouble, recovered, planner-failed, policies-...; others describe the process
    sentence: str
    fields: tuple[tuple[str, str | int], ...] = ()
    level: Level = "info"

    def as_json(self, at: Instant) -> bytes:
        entries = {"time": timestamp(at), "level": self.level, "event": self.event, "message": self.sentence}
        return msgspec.json.encode(entries | dict(self.fields))

    def as_text(self, at: Instant) -> str:
        return f"{timestamp(at)} {self.level:7} {self.event}: {visible(self.sentence)}"


def lines(before: CycleResult | None, after: CycleResult, *, is_grouped: bool = False) -> Iterator[LogLine]:
    """Log lines for what changed since the previous cycle. `is_grouped`: one line for nodes or pods that differ only in
    a number, for people; programs find a subject in a line of its own.
    """
    yield from _of_policies(before, after)
    if after.trouble and (before is None or after.trouble != before.trouble):
        yield LogLine("trouble", after.trouble, level="error")
    if before is not None and before.trouble and not after.trouble:
        yield LogLine("recovered", "the previous problem is resolved")
    if after.plan is not None:
        known = before.plan.troubles if before and before.plan else ()
        yield from (_of_trouble(each) for each in after.plan.troubles if each not in known)
        yield from _of_decisions(before.plan.decisions if before and before.plan else (), after, is_grouped)
    yield from map(_of_outcome, after.outcomes)


def _of_policies(before: CycleResult | None, after: CycleResult) -> Iterator[LogLine]:
    known = before.problems if before else ()
    for problem in after.problems:
        if problem not in known:
            text = f"{problem.file}:{problem.line}:{problem.column}: {problem.code}: {problem.sentence}"
            yield LogLine("policies-refused", text, (("code", problem.code), ("file", problem.file)), "error")
    if known and not after.problems:
        yield LogLine("policies-good", "the policies are valid again")


def _of_decisions(known: Sequence[Decision], after: CycleResult, is_grouped: bool) -> Iterator[LogLine]:
    decisions = after.plan.decisions if after.plan else ()
    said = {_key(each): _gist(each) for each in known}
    changed = [each for each in decisions if said.get(_key(each)) != _gist(each)]
    now = after.inputs.now if after.inputs is not None else after.at
    for run in [changed] if is_grouped else [[each] for each in changed]:
        yield from (_of_group(group, after) for group in grouped(run, now))
    left = {_key(each) for each in decisions}
    for each in known:
        if _key(each) not in left:
            fields = (("planner", each.planner), ("subject", each.subject.title))
            yield LogLine("gone", f"{each.subject.title}: no action needed any more", fields)


def _of_group(group: DecisionGroup, after: CycleResult) -> LogLine:
    """The canonical line, and the sentence of the first decision."""
    decision = group.decisions[0]
    text = f"{group.line}{', for example' if len(group.decisions) > 1 else ''}: {sentence(decision.reason)}"
    return LogLine("decided", text, (("decision", group.line), *_decision_fields(decision, after)))


def _decision_fields(decision: Decision, after: CycleResult) -> Iterator[tuple[str, str | int]]:
    act = decision.act
    yield "planner", decision.planner
    yield "subject", decision.subject.title
    yield "action", type(act).__name__.lower()
    yield "reason", decision.reason.code
    if decision.pool:
        yield "pool", decision.pool
    if decision.would:
        yield "would", 1
    if isinstance(act, Hold) and act.until is not None:
        yield "until", timestamp(act.until)
    if place := place_of(decision.reason.origin):
        yield "place", place
    if after.plan is not None:
        yield "plan", after.plan.digest


def _of_trouble(trouble: PlannerFailure) -> LogLine:
    """With the code locations, which are needed to fix the bug."""
    what = f"GpuPool/{trouble.pool}" if trouble.pool else "any pool"
    fields = [("planner", trouble.planner), ("error", trouble.error), ("trace", " > ".join(trouble.trace))]
    fields += [("pool", trouble.pool)] if trouble.pool else []
    text = f"{trouble.planner} could not plan for {what}, because of a bug in reconciler: {trouble.error}"
    return LogLine("planner-failed", text, tuple(fields), "error")


def _of_outcome(outcome: Outcome) -> LogLine:
    fields = (("subject", outcome.subject.title), ("action", outcome.verb), ("result", outcome.result))
    text = f"{outcome.verb} {outcome.subject.title}: {outcome_words(outcome)}"
    return LogLine("written", text, fields, "info" if outcome.result == "done" else "warning")


def _key(decision: Decision) -> tuple[str, Ref]:
    return decision.planner, msgspec.structs.replace(decision.subject, uid="")


def _gist(decision: Decision) -> tuple[str, str, bool]:
    """Identity of a decision. Facts and times change with each cycle and are left out."""
    return type(decision.act).__name__, decision.reason.code, decision.would
