"""Blocked holds in a report: the lines at its top, and the findings for pipelines; one rule for every format."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.report.blocks import Severity, TextLine, line
from reconciler.report.decision_text import MOST_ALIKE, DecisionText
from reconciler.report.document import Finding


def is_blocking(decision_texts: Iterable[DecisionText], guarded: GuardVerdict) -> bool:
    """Whether a guard holds something that counts for the change."""
    return any(each.blocks and _guard_of(each) == guarded.guard for each in decision_texts)


def beside_guards(decision_texts: Iterable[DecisionText]) -> tuple[DecisionText, ...]:
    """Blocked holds that count, for another reason than a limit of a guard."""
    return tuple(each for each in decision_texts if each.blocks and not _guard_of(each))


def _guard_of(decision_text: DecisionText) -> str:
    """The guard by whose limit it is held."""
    facts = decision_text.decision.reason.facts
    return facts.guard.name if isinstance(facts, HeldByGuard) else ""


def blocked_titles(decision_texts: Iterable[DecisionText]) -> list[str]:
    """Subjects of the blocked holds that count."""
    return sorted({each.decision.subject.title for each in decision_texts if each.blocks})


def reason_lines(decision_texts: Iterable[DecisionText]) -> Iterator[TextLine]:
    """BLOCKED by FieldConflict: NodePool/a100. One line a reason; `decision_texts` are blocked holds."""
    titles: defaultdict[str, list[str]] = defaultdict(list)
    for each in decision_texts:
        titles[each.decision.reason.code].append(each.decision.subject.title)
    for code, subjects in titles.items():
        more = f" and {len(subjects) - MOST_ALIKE} more" if len(subjects) > MOST_ALIKE else ""
        yield line(f"BLOCKED by {code}: {', '.join(subjects[:MOST_ALIKE])}{more}", "bad")


def hold_findings(held: Iterable[DecisionText]) -> Iterator[Finding]:
    """A blocked hold that counts is an error, what else a person or a guard holds a warning, and what waits by itself
    a note."""
    for decision_text in held:
        origin = decision_text.decision.reason.origin
        severity: Severity = "error" if decision_text.blocks else "warning" if decision_text.held_by_someone else "note"
        yield Finding(
            file=origin.file if origin else "",
            line=origin.line if origin else 0,
            column=0,
            code=decision_text.decision.reason.code,
            sentence=f"would, if {decision_text.observation.unless}: {decision_text.sentence}"
            if decision_text.observation
            else decision_text.sentence,
            remedy=decision_text.remedy,
            severity=severity,
            subject=decision_text.decision.subject.title,
        )
