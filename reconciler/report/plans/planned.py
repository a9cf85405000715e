"""Planned: the input of a plan's report."""

from collections.abc import Iterable, Iterator

import msgspec

from reconciler.model.bundle import PolicyChange
from reconciler.model.cluster.observed import Unread
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.plan.plan import Plan
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.observing import Observation
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.holds.classes import is_at_rest
from reconciler.plan.impact.departures import Departing
from reconciler.plan.impact.pricing import Bills
from reconciler.report.decision_text import MOST_ALIKE, DecisionText
from reconciler.report.document import Finding, Severity, TextLine, line
from reconciler.report.header import ReportHeader
from reconciler.report.plans.plan_shape import Amount
from reconciler.report.wording import grouped


class PoolLine(msgspec.Struct, frozen=True):
    """Current state of a pool."""

    pool: str
    nodes: int
    busy_nodes: int
    gpus: int
    gpus_in_use: int
    cost: Bills = Bills()
    budgets_read: bool = True  # False: PodDisruptionBudgets could not be read, so what they block is unknown
    remarks: tuple[str, ...] = ()  # further lines, such as headroom under limits
    declared: bool = True  # False: no policy declares the pool any more
    observation: Observation | None = None  # why nothing is carried out in the pool


class Planned(msgspec.Struct, frozen=True):
    """Input of a plan's report. Without a base, `changes` is empty, and the decisions of the plan are the changes."""

    setting: ReportHeader
    plan: Plan
    decision_texts: tuple[DecisionText, ...]  # decisions of the plan, in order
    base: Plan | None = None  # plan of the base revision, on the same cluster
    changes: tuple[PolicyChange, ...] = ()
    pools: tuple[PoolLine, ...] = ()
    nodes: Amount = Amount(0, 0, 0)  # of the declared pools, and of pools no longer declared that the plan touches
    gpus: Amount = Amount(0, 0, 0)  # on these nodes
    unread: tuple[Unread, ...] = ()
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # important notices
    freezes: tuple[Freeze, ...] = ()  # in force now
    saved_digest: str = ""  # of the file that the plan was saved in, if any
    departing: tuple[Departing, ...] = ()  # nodes that scaling removes, with or without this change

    @property
    def acted(self) -> tuple[DecisionText, ...]:
        return tuple(each for each in self.decision_texts if not each.held)

    @property
    def held(self) -> tuple[DecisionText, ...]:
        """Decisions held by a person or a guard."""
        return tuple(each for each in self.decision_texts if each.held_by_someone and not is_at_rest(each.decision))

    @property
    def waiting(self) -> tuple[DecisionText, ...]:
        """Holds that end by themselves. Marked nodes that wait for their timer are excluded: the pool sections show
        them."""
        return tuple(each for each in self.decision_texts if each.waits and not is_at_rest(each.decision))

    @property
    def blocked(self) -> tuple[DecisionText, ...]:
        """Holds that cause exit code 4."""
        return tuple(each for each in self.decision_texts if each.blocks)

    def pool(self, name: str) -> PoolLine | None:
        return next((each for each in self.pools if each.pool == name), None)


# --- Blocked holds in a report: top lines, and findings for pipelines; the same rule for every format.


def is_blocking(decision_texts: Iterable[DecisionText], guarded: GuardVerdict) -> bool:
    """Whether the guard holds something that counts for this change."""
    return any(each.blocks and guard_of(each) == guarded.guard for each in decision_texts)


def beside_guards(decision_texts: Iterable[DecisionText]) -> tuple[DecisionText, ...]:
    """Blocked holds that count, for reasons other than a limit of a guard."""
    return tuple(each for each in decision_texts if each.blocks and not guard_of(each))


def guard_of(decision_text: DecisionText) -> str:
    """Name of the guard whose limit holds the decision."""
    facts = decision_text.decision.reason.facts
    return facts.guard.name if isinstance(facts, HeldByGuard) else ""


def blocked_titles(decision_texts: Iterable[DecisionText]) -> list[str]:
    """Subjects of the blocked holds that count."""
    return sorted({each.decision.subject.title for each in decision_texts if each.blocks})


def reason_lines(decision_texts: Iterable[DecisionText]) -> Iterator[TextLine]:
    """One line per reason, such as BLOCKED by FieldConflict: NodePool/a100. `decision_texts` are blocked holds."""
    for code, alike in grouped(decision_texts, lambda each: each.decision.reason.code).items():
        titles = [each.decision.subject.title for each in alike]
        more = f" and {len(titles) - MOST_ALIKE} more" if len(titles) > MOST_ALIKE else ""
        yield line(f"BLOCKED by {code}: {', '.join(titles[:MOST_ALIKE])}{more}", "bad")


def hold_findings(held: Iterable[DecisionText]) -> Iterator[Finding]:
    """A blocked hold that counts is an error, another hold by a person or a guard a warning, and a hold that ends by
    itself a note."""
    for decision_text in held:
        origin = decision_text.decision.reason.origin
        severity: Severity = "error" if decision_text.blocks else "warning" if decision_text.held_by_someone else "note"
        yield Finding(
            file=origin.file if origin else "",
            line=origin.line if origin else 0,
            column=0,
            code=decision_text.decision.reason.code,
            sentence=f"would apply if {decision_text.observation.unless}: {decision_text.sentence}"
            if decision_text.observation
            else decision_text.sentence,
            remedy=decision_text.remedy,
            severity=severity,
            subject=decision_text.decision.subject.title,
        )
