"""What stands over a node or a pool, whoever acts on it: freezes, and what guards still allow in the hour."""

from collections.abc import Iterator

from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.words import MEASURES
from reconciler.report.explain.about import Row, placed


def freeze_rows(freeze: Freeze | None) -> Iterator[Row]:
    """The widest, if there is any."""
    if freeze is not None:
        yield "frozen", f"{freeze.scope_text}, {freeze.until_text}: only untainting and releasing go on"


def guard_rows(scene: PlanningResult, pool: str) -> Iterator[Row]:
    """Each guard of the pool, what it has counted in the hour, and allows."""
    said = {each.guard: each for each in scene.plan.guarded if not each.would}
    for guard in scene.inputs.desired.guards:
        if {"*", pool} & set(guard.spec.pool_names):
            without = "suspended" if guard.spec.suspend else "for another cluster"
            text = _hour(said[guard.name]) if guard.name in said else without
            yield "guard", f"ChangeGuard/{guard.name}: {text}, {placed(guard.origin())}"


def _hour(guarded: GuardVerdict) -> str:
    hour = [each for each in guarded.counts if each.period == "hour"]
    counts = ", ".join(f"{each.before} of {each.allowed} {MEASURES[each.measure]}" for each in hour)
    return f"in the hour so far {counts}" if counts else "no limit of the hour"
