"""How long it takes to tell what becomes of 5,000 nodes with 100,000 pods that drift at once, in one NodePool."""

import statistics
import time
from typing import Any

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.plan.karpenter.disruption_forecast import Surroundings, fates
from reconciler.plan.nodes.eviction import PodBudgets
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result
from tests.unit.plan.karpenter.stage import NOW, POOL, Words, drift_of, node_pool, observed, spec_of

NODES = 5_000
PODS = 20  # a node
APPS = 500
RUNS = 5
AIM_UNITS = 10


def fleet_of(budgets: int) -> tuple[Words, Fleet, tuple[PodDisruptionBudget, ...]]:
    """As many nodes as there are, a group for each application, whose pods the budgets of its name hold for."""
    pods: list[Words] = [{"gpus": 0, "labels": {"app": "", "part-of": "all", "hash": "5d8f"}} for _ in range(PODS)]
    groups: dict[str, Any] = {}
    for app in range(APPS):
        there = [each | {"labels": each["labels"] | {"app": f"app-{app}"}} for each in pods]
        there[0] |= {"asks": "true", "gpus": 8} if app % 3 == 0 else {}
        groups[f"app-{app}"] = {"count": NODES // APPS, "pods": there}
    case = {
        "nodes": groups,
        "fresh": list(groups),
        "pdbs": {f"b{n}": {"labels": {"app": f"app-{n}", "part-of": "all"}, "allows": n % 2} for n in range(budgets)},
    }
    seen = observed(case)
    return case, Fleet(seen), seen.budgets


@pytest.mark.bench
def test_the_fates_of_5000_nodes_are_told(recorder: Recorder, unit: Unit) -> None:
    figures = unit.figures | {"aim_units": AIM_UNITS, "aim_ms": unit.of_ms(AIM_UNITS)}
    untold = 0
    for budgets in (0, APPS, 5_000):
        case, fleet, held = fleet_of(budgets)
        live = node_pool(spec_of(case, "budgets") or {})
        drift = drift_of(case)
        fleet.pods_on("")
        seconds = []
        for _ in range(RUNS):
            began = time.perf_counter()
            found = fates(live, live.spec, drift, Surroundings(fleet, NOW, PodBudgets(held), POOL))
            seconds.append(time.perf_counter() - began)
            untold += NODES - sum(len(each.nodes) for each in found)
        figures[f"with_{budgets}_pod_budgets_median_ms"] = round(1000 * statistics.median(seconds))
    what = f"{NODES} nodes with {NODES * PODS} pods drifted at once"
    recorder.write(Result("bench-fates", what, 3 * RUNS, untold, figures=figures))
    assert untold == 0
