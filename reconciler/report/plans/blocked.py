"""Blocked holds in a report: the lines at its top, and the findings for pipelines; one rule for every format."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.report.blocks import Line, Severity, line
from reconciler.report.decision_text import MOST_ALIKE, DecisionText
from reconciler.report.document import Finding


def is_blocking(told: Iterable[DecisionText], guarded: GuardVerdict) -> bool:
    """Whether a guard holds something that counts for the change."""
    return any(each.blocks and _guard_of(each) == guarded.guard for each in told)


def beside_guards(told: Iterable[DecisionText]) -> tuple[DecisionText, ...]:
    """Blocked holds that count, for another reason than a limit of a guard."""
    return tuple(each for each in told if each.blocks and not _guard_of(each))


def _guard_of(told: DecisionText) -> str:
    """The guard by whose limit it is held."""
    facts = told.decision.reason.facts
    return facts.guard.name if isinstance(facts, HeldByGuard) else ""


def blocked_titles(told: Iterable[DecisionText]) -> list[str]:
    """Subjects of the blocked holds that count."""
    return sorted({each.decision.subject.title for each in told if each.blocks})


def reason_lines(told: Iterable[DecisionText]) -> Iterator[Line]:
    """BLOCKED by FieldConflict: NodePool/a100. One line a reason; `told` are blocked holds."""
    titles: defaultdict[str, list[str]] = defaultdict(list)
    for each in told:
        titles[each.decision.reason.code].append(each.decision.subject.title)
    for code, subjects in titles.items():
        more = f" and {len(subjects) - MOST_ALIKE} more" if len(subjects) > MOST_ALIKE else ""
        yield line(f"BLOCKED by {code}: {', '.join(subjects[:MOST_ALIKE])}{more}", "bad")


def hold_findings(held: Iterable[DecisionText]) -> Iterator[Finding]:
    """A blocked hold that counts is an error, what else a person or a guard holds a warning, and what waits by itself
    a note."""
    for told in held:
        origin = told.decision.reason.origin
        severity: Severity = "error" if told.blocks else "warning" if told.held_by_someone else "note"
        yield Finding(
            file=origin.file if origin else "",
            line=origin.line if origin else 0,
            column=0,
            code=told.decision.reason.code,
            sentence=f"would, if {told.observation.unless}: {told.sentence}" if told.observation else told.sentence,
            remedy=told.remedy,
            severity=severity,
            subject=told.decision.subject.title,
        )
