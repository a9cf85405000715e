"""Planned: a plan and all that its report says beside it."""

from collections import defaultdict
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
from reconciler.report.decision_text import MOST_ALIKE, DecisionText
from reconciler.report.document import Finding, Severity, TextLine, line
from reconciler.report.header import ReportHeader
from reconciler.report.plans.plan_shape import Amount


class Cost(msgspec.Struct, frozen=True):
    """Micro dollars an hour: now, once all is done that comes without this change, and once all is done with it. All by
    the same prices: see impact/pricing.py."""

    now: int = 0
    without: int = 0
    with_change: int = 0
    committed: int = 0  # of each: paid whether nodes run or not
    repriced: int = 0  # what the fleet as it is costs more by these prices than by those of the base


class PoolLine(msgspec.Struct, frozen=True):
    """A pool as it stands."""

    pool: str
    nodes: int
    busy_nodes: int
    gpus: int
    gpus_in_use: int
    cost: Cost = Cost()
    unpriced: int = 0  # nodes whose price nobody declared: they are not in the cost
    budgets_read: bool = True  # PodDisruptionBudgets: where not, what they hold up is not known
    remarks: tuple[str, ...] = ()  # further lines: what limits leave room for, say
    declared: bool = True  # False: no policy declares it any more
    observation: Observation | None = None  # why nothing is carried out there


class Planned(msgspec.Struct, frozen=True):
    """Without a base, `changes` are empty, and the plan's own decisions are what changes."""

    setting: ReportHeader
    plan: Plan
    decision_texts: tuple[DecisionText, ...]  # the decisions of the plan, in their order
    base: Plan | None = None  # of the base revision, on the same cluster
    changes: tuple[PolicyChange, ...] = ()
    pools: tuple[PoolLine, ...] = ()
    nodes: Amount = Amount(0, 0, 0)  # of these pools, and of those that are no longer declared and that it touches
    gpus: Amount = Amount(0, 0, 0)  # on these nodes
    unread: tuple[Unread, ...] = ()
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # notices that must not be overlooked
    freezes: tuple[Freeze, ...] = ()  # that hold now
    saved_digest: str = ""  # of the file that the plan was saved in, if any
    departing: tuple[Departing, ...] = ()  # nodes that scaling takes away, with this change or without it

    @property
    def acted(self) -> tuple[DecisionText, ...]:
        return tuple(each for each in self.decision_texts if not each.held)

    @property
    def held(self) -> tuple[DecisionText, ...]:
        """What a person or a guard holds."""
        return tuple(each for each in self.decision_texts if each.held_by_someone and not is_at_rest(each.decision))

    @property
    def waiting(self) -> tuple[DecisionText, ...]:
        """Holds that go on by themselves. A marked node that waits for its time is none: the pools tell of it."""
        return tuple(each for each in self.decision_texts if each.waits and not is_at_rest(each.decision))

    @property
    def blocked(self) -> tuple[DecisionText, ...]:
        """Holds for which the command ends with exit code 4."""
        return tuple(each for each in self.decision_texts if each.blocks)

    def pool(self, name: str) -> PoolLine | None:
        return next((each for each in self.pools if each.pool == name), None)


# --- Blocked holds in a report: the lines at its top, and the findings for pipelines; one rule for every format.


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
