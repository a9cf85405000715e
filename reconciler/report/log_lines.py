"""What a cycle puts into the log: a line for each decision that is another than in the cycle before, and for what was
written, in words and as fields."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.action import Hold, Ref
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.outcome import Outcome
from reconciler.model.plan.trouble import PlannerFailure
from reconciler.report.decision_text import place_of
from reconciler.report.sentences import sentence
from reconciler.report.visible import visible

Level = Literal["info", "warning", "error"]


class LogLine(msgspec.Struct, frozen=True):
    """One line: an event of a closed set, a sentence, and what a machine looks for."""

    event: str  # decided, gone, written, trouble, recovered, planner-failed, policies-...; others tell of the process
    sentence: str
    fields: tuple[tuple[str, str | int], ...] = ()
    level: Level = "info"

    def as_json(self, at: Instant) -> bytes:
        entries = {"time": timestamp(at), "level": self.level, "event": self.event, "message": self.sentence}
        return msgspec.json.encode(entries | dict(self.fields))

    def as_text(self, at: Instant) -> str:
        return f"{timestamp(at)} {self.level:7} {self.event}: {visible(self.sentence)}"


def lines(before: CycleResult | None, after: CycleResult) -> Iterator[LogLine]:
    """What there is to say of a cycle that the one before has not said."""
    yield from _of_policies(before, after)
    if after.trouble and (before is None or after.trouble != before.trouble):
        yield LogLine("trouble", after.trouble, level="error")
    if before is not None and before.trouble and not after.trouble:
        yield LogLine("recovered", "what stood in the way is over")
    if after.plan is not None:
        known = before.plan.troubles if before and before.plan else ()
        yield from (_of_trouble(each) for each in after.plan.troubles if each not in known)
        yield from _of_decisions(before.plan.decisions if before and before.plan else (), after)
    yield from map(_of_outcome, after.outcomes)


def _of_policies(before: CycleResult | None, after: CycleResult) -> Iterator[LogLine]:
    known = before.problems if before else ()
    for problem in after.problems:
        if problem not in known:
            text = f"{problem.file}:{problem.line}:{problem.column}: {problem.code}: {problem.sentence}"
            yield LogLine("policies-refused", text, (("code", problem.code), ("file", problem.file)), "error")
    if known and not after.problems:
        yield LogLine("policies-good", "the policies are good again")


def _of_decisions(known: Sequence[Decision], after: CycleResult) -> Iterator[LogLine]:
    decisions = after.plan.decisions if after.plan else ()
    said = {_key(each): _gist(each) for each in known}
    for each in decisions:
        if said.get(_key(each)) != _gist(each):
            yield _of_decision(each, after)
    left = {_key(each) for each in decisions}
    for each in known:
        if _key(each) not in left:
            fields = (("planner", each.planner), ("subject", each.subject.title))
            yield LogLine("gone", f"{each.subject.title}: nothing is to be done any more", fields)


def _of_decision(decision: Decision, after: CycleResult) -> LogLine:
    act = decision.act
    verb = "hold" if isinstance(act, Hold) else type(act).__name__.lower()
    fields: list[tuple[str, str | int]] = [
        ("planner", decision.planner),
        ("subject", decision.subject.title),
        ("action", verb),
        ("reason", decision.reason.code),
    ]
    if decision.pool:
        fields.append(("pool", decision.pool))
    if decision.would:
        fields.append(("would", 1))
    if isinstance(act, Hold) and act.until is not None:
        fields.append(("until", timestamp(act.until)))
    if place := place_of(decision.reason.origin):
        fields.append(("place", place))
    if after.plan is not None:
        fields.append(("plan", after.plan.digest))
    text = f"would {verb}" if decision.would else verb
    return LogLine("decided", f"{text} {decision.subject.title}: {sentence(decision.reason)}", tuple(fields))


def _of_trouble(trouble: PlannerFailure) -> LogLine:
    """With the places in our code: without them nobody could mend it."""
    what = f"GpuPool/{trouble.pool}" if trouble.pool else "any pool"
    fields = [("planner", trouble.planner), ("error", trouble.error), ("trace", " > ".join(trouble.trace))]
    fields += [("pool", trouble.pool)] if trouble.pool else []
    text = f"{trouble.planner} could not plan for {what}, by a fault of reconciler: {trouble.error}"
    return LogLine("planner-failed", text, tuple(fields), "error")


def _of_outcome(outcome: Outcome) -> LogLine:
    fields = (("subject", outcome.subject.title), ("action", outcome.verb), ("result", outcome.result))
    text = f"{outcome.verb} {outcome.subject.title}: {outcome.result}"
    level: Level = "info" if outcome.result == "done" else "warning"
    return LogLine("written", f"{text}: {outcome.detail}" if outcome.detail else text, fields, level)


def _key(decision: Decision) -> tuple[str, Ref]:
    return decision.planner, msgspec.structs.replace(decision.subject, uid="")


def _gist(decision: Decision) -> tuple[str, str, bool]:
    """Facts and times move on with each cycle; what is meant is this."""
    return type(decision.act).__name__, decision.reason.code, decision.would
