"""The plans of which lines are recorded: each golden case by its own stage, and drawn fleets with all planners."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.plan import Plan
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.impact import with_impact
from reconciler.plan.planner import plan
from tests.unit.plan.drain import stage as drain_stage
from tests.unit.plan.drawn_fleets import Drawn
from tests.unit.plan.guards import stage as guards_stage
from tests.unit.plan.guards.test_frozen import CASES as FROZEN
from tests.unit.plan.guards.test_limits import TABLES as GUARDED
from tests.unit.plan.impact.stage import scene_of
from tests.unit.plan.manifests import stage as manifests_stage
from tests.unit.plan.manifests.test_planner import CASES as MANIFESTS
from tests.unit.plan.pressure import stage as pressure_stage
from tests.unit.plan.pressure.test_migration import CASES as PRESSURE
from tests.unit.plan.scaling import stage as scaling_stage
from tests.unit.plan.scaling.test_scaling import CASES as SCALING
from tests.unit.plan.smart_pods import stage as smart_stage
from tests.unit.plan.smart_pods.test_smart_pods import CASES as SMART
from tests.unit.report.plans.test_purchases import CASES as PURCHASES

DRAWN = 240
Plans = Iterator[tuple[str, Plan]]


def _of_stage(world: Any, cases: Mapping[str, Any]) -> Plans:
    for name, case in cases.items():
        yield name, world(case).planned()


def _manifests() -> Plans:
    for name, case in MANIFESTS.items():
        inputs = manifests_stage.inputs_of(case)
        yield name, plan(inputs, Fleet(inputs.observed))


def _purchases() -> Plans:
    for name, case in PURCHASES.items():
        yield name, with_impact(scene_of(case)).scene.plan


def _drawn() -> Plans:
    for seed in range(DRAWN):
        inputs = Drawn(seed).inputs()
        fleet = Fleet(inputs.observed)
        yield f"drawn {seed}", with_impact(PlanningResult(inputs, fleet, plan(inputs, fleet))).scene.plan


SUITES: Mapping[str, Callable[[], Plans]] = {
    "drain": lambda: _of_stage(drain_stage.World, drain_stage.tables()),
    "scaling": lambda: _of_stage(scaling_stage.World, SCALING),
    "smart_pods": lambda: _of_stage(smart_stage.SmartWorld, SMART),
    **{
        f"guards_{name.removesuffix('.yaml')}": partial(_of_stage, guards_stage.World, cases)
        for name, cases in GUARDED.items()
    },
    "pressure": lambda: _of_stage(pressure_stage.World, PRESSURE),
    "frozen": lambda: _of_stage(guards_stage.World, FROZEN),
    "purchases": _purchases,
    "manifests": _manifests,
    "drawn": _drawn,
}
