"""Gauges of the pressure feature: nodes under pressure, and pods that are leaving because of pressure."""

from collections import Counter
from collections.abc import Mapping

from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.feature.feature import CycleGauge
from reconciler.plan.pressure.report import PressureReport


def _report(cycled: CycleResult) -> PressureReport | None:
    """None without a plan, or while nobody knows what is reserved: the gauges keep their values."""
    if cycled.plan is None or cycled.inputs is None or cycled.inputs.pressure is None:
        return None
    return cycled.plan.report(PressureReport)


def _nodes(cycled: CycleResult) -> Mapping[tuple[str, ...], float] | None:
    report = _report(cycled)
    return None if report is None else {(pool,): nodes for pool, nodes in _by_pool(report).items()}


def _by_pool(report: PressureReport) -> Counter[str]:
    return Counter(each.pool for each in report.nodes)


def _migrations(cycled: CycleResult) -> Mapping[tuple[str, ...], float] | None:
    report = _report(cycled)
    return None if report is None else {(pool,): pods for pool, pods in report.migrating.items()}


GAUGES = (
    CycleGauge(
        "reconciler_nodes_under_pressure",
        "Nodes where more is reserved than the watermark allows, or where permits lack resources.",
        ("pool",),
        _nodes,
    ),
    CycleGauge("reconciler_migrations", "Pods that are leaving because of pressure.", ("pool",), _migrations),
)
