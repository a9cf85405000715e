"""Gauges of the pressure feature: nodes under pressure, and pods that are leaving because of pressure."""

from collections import Counter
from collections.abc import Mapping

from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.feature.feature import CycleGauge
from reconciler.plan.pressure.memory import MigrationMemory
from reconciler.plan.pressure.reasons import PLANNER
from reconciler.plan.pressure.report import PressureReport


def _nodes(cycled: CycleResult) -> Mapping[tuple[str, ...], float] | None:
    """None without a plan, or while nobody knows what is reserved: the gauge keeps its values."""
    if cycled.plan is None or cycled.inputs is None or cycled.inputs.pressure is None:
        return None
    return {(pool,): nodes for pool, nodes in cycled.plan.report(PressureReport).nodes.items()}


def _migrations(cycled: CycleResult) -> Mapping[tuple[str, ...], float] | None:
    if cycled.plan is None:
        return None
    migrations = cycled.plan.memory.section(PLANNER, MigrationMemory).migrations
    return {(pool,): pods for pool, pods in Counter(each.pool for each in migrations if each.gone_at is None).items()}


GAUGES = (
    CycleGauge(
        "reconciler_nodes_under_pressure",
        "Nodes where more is reserved than the watermark allows, or where permits lack resources.",
        ("pool",),
        _nodes,
    ),
    CycleGauge("reconciler_migrations", "Pods that are leaving because of pressure.", ("pool",), _migrations),
)
