"""What is decided, as the golden tables have it: the lines of reconciler/report/decision_line.py."""

from collections.abc import Iterable

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision
from reconciler.report.decision_line import grouped
from tests.unit.plan.scaling.stage import NOW


def lines_of(decisions: Iterable[Decision], now: Instant = NOW) -> list[str]:
    return [each.line for each in grouped(tuple(decisions), now)]
