"""Why something is, or is not, being acted on, as a document."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model.human_time import moment
from reconciler.model.last_change import LastChange
from reconciler.model.revision import short_revision
from reconciler.report.blocks import Block, Fact, FactList, TextLine, line
from reconciler.report.decision_text import DecisionText
from reconciler.report.document import CheckedCount, ReportDocument
from reconciler.report.plans.plan_json import decision_json
from reconciler.report.setting import ReportHeader

FORMAT_VERSION = 2


class Explained(msgspec.Struct, frozen=True):
    """Rows of one label that follow one another belong together."""

    setting: ReportHeader
    subject: str  # node/ip-10-3-41-7
    headline: str
    outcome: str = ""  # what will happen to it
    rows: tuple[tuple[str, str], ...] = ()
    decision_texts: tuple[DecisionText, ...] = ()
    last_changes: tuple[LastChange, ...] = ()  # of the lines that asked for what is decided


def explained_document(explained: Explained) -> ReportDocument:
    """The subject, what will happen to it, and what is behind that."""
    return ReportDocument(
        command="explain",
        title=explained.subject,
        tool_version=explained.setting.tool_version,
        blocks=tuple(_blocks(explained)),
        payload=_payload(explained),
        otherwise=explained.headline,
        judged=CheckedCount(1, "subject", "problem"),
    )


def _blocks(explained: Explained) -> Iterator[Block]:
    yield line(f"{explained.subject}: {explained.headline}", "strong")
    codes = tuple(dict.fromkeys(each.decision.reason.code for each in explained.decision_texts))
    if explained.outcome:
        yield TextLine((explained.outcome, *codes))
    if facts := _facts(explained):
        yield FactList(facts)


def _facts(explained: Explained) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for label, text in (*explained.rows, *_of_decisions(explained)):
        if facts and facts[-1].label == label:
            facts[-1] = Fact(label, (*facts[-1].lines, text))
        else:
            facts.append(Fact(label, (text,)))
    return tuple(facts)


def _of_decisions(explained: Explained) -> Iterator[tuple[str, str]]:
    """The lines that asked for what is decided, and when that is looked at again."""
    places = []
    for each in explained.decision_texts:
        if each.place:
            origin = each.decision.reason.origin
            revision = f" @ {short_revision(origin.revision)}" if origin and origin.revision else ""
            places.append(f"{each.place}{revision}")
    places = list(dict.fromkeys(places))
    yield from (("asked for by", place) for place in places)
    yield from (("last changed", _changed(change, len(places) > 1)) for change in explained.last_changes)
    times = sorted(
        {decision_text.until for decision_text in explained.decision_texts if decision_text.until is not None}
    )
    if times:
        others = f", and {len(times) - 1} more times" if len(times) > 1 else ""
        yield "looked at again", f"{moment(times[0], explained.setting.now)}{others}"
    yield from (
        ("to do", remedy)
        for remedy in dict.fromkeys(decision_text.remedy for decision_text in explained.decision_texts)
        if remedy
    )


def _changed(change: LastChange, is_one_of_many: bool) -> str:
    """4c1f9e2 by A. Name on 2026-11-02: what they said of it."""
    line = f"{change.origin.place}: " if is_one_of_many else ""
    if change.unknown_before:
        return f"{line}unknown before {short_revision(change.unknown_before)}"
    by = f" by {change.author}" if change.author else ""
    on = f" on {change.date}" if change.date else ""
    return f"{line}{short_revision(change.commit)}{by}{on}" + (f": {change.subject}" if change.subject else "")


def _payload(explained: Explained) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "subject": explained.subject,
        "headline": explained.headline,
        "outcome": explained.outcome,
        "rows": [{"label": label, "text": text} for label, text in explained.rows],
        "last_changes": [msgspec.to_builtins(each) for each in explained.last_changes],
        "decisions": [msgspec.to_builtins(decision_json(each)) for each in explained.decision_texts],
    }
