"""Stories drawn by chance: a pool that is edited once, with or without provisioner and guard, loads, faults and hands.

A story is a scenario with its policies in it, so that what is left of one that fails can be played by the command.
"""

import random
from pathlib import Path
from typing import Any

import yaml

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model import names
from reconciler.model.policy.gpu import PoolTaint
from reconciler.model.quantity import Duration
from reconciler.simulate.runner.play import Play
from reconciler.simulate.scenario.cluster import (
    Bursts,
    Constant,
    GangWorkload,
    Inference,
    InitialCluster,
    Mix,
    NodeSet,
    ScenarioWorkload,
    Steady,
    WorkloadToleration,
)
from reconciler.simulate.scenario.reading import scenario_text
from reconciler.simulate.scenario.spec import Scenario, ScenarioEdit, ScenarioFault, ScenarioRevision

SEED = 1
HOURS = 6
MINUTE_MS = 60_000
_MOST_NODES = 24

Json = dict[str, Any]


def drawn(folder: Path, number: int) -> Play:
    """Six hours, written there and read again."""
    chance = random.Random(f"{SEED}/{number}")
    count = chance.randrange(3, 25)
    scenario = Scenario(
        duration=Duration(HOURS * 60 * MINUTE_MS),
        seed=number,
        cycle_every=Duration(chance.choice([1_000, 5_000, 30_000])),
        cluster=InitialCluster(nodes=[NodeSet(pool="a100", count=count)]),
        workloads=[_workload(chance, at, count) for at in range(chance.randrange(1, 5))],
        faults=[_fault(chance) for _ in range(chance.randrange(4))],
        edits=[_edit(chance) for _ in range(chance.randrange(4))],
        policies=_policies(chance, count),
    )
    return played_from(folder / f"story-{number}.yaml", scenario)


def played_from(file: Path, scenario: Scenario) -> Play:
    """As the command would, once it is written."""
    file.write_text(scenario_text("drawn", scenario), encoding="utf-8")
    found = prepared(SimulationRequest(file))
    assert found.plays, found.checkup.resolved.problems
    return found.plays[0]


def _policies(chance: random.Random, count: int) -> list[ScenarioRevision]:
    """Before and after an edit, by which the nodes of the pool drift."""
    around = [each for each in (_guard(chance), _provisioner(chance, count)) if each is not None]
    modes = chance.choices(["Enforce", "Observe"], [6, 1], k=2)
    taint = {"key": "dedicated", "value": "training", "effect": "NoSchedule"}
    files = [
        {"all.yaml": yaml.safe_dump_all([_pool(mode, taints), *around])}
        for mode, taints in zip(modes, ([], [taint]), strict=True)
    ]
    return [ScenarioRevision(files=files[0]), ScenarioRevision(files=files[1], at=Duration(120 * MINUTE_MS))]


def _declared(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": "gpu.scheduling/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _pool(mode: str, taints: list[Json]) -> Json:
    capacity = {"cpu": 96, "memory": "1152Gi", "pods": 250}
    machine = {"name": "p4d.24xlarge", "capacity": capacity, "pricePerHour": {"on-demand": "21.96"}}
    spec = {
        "mode": mode,
        "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
        "instanceTypes": [machine],
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu-a100"},
        "taints": taints,
        "limits": {"nodes": _MOST_NODES},
    }
    return _declared("GpuPool", "a100", spec)


def _guard(chance: random.Random) -> Json | None:
    """Every other story has one."""
    ceilings = [
        {"maxRemovedNodes": chance.randrange(0, 30), "maxDisruptedGPUs": chance.randrange(0, most)}
        for most in (200, 300)
    ]
    spec = {"poolNames": ["*"], "perPlan": ceilings[0], "perHour": ceilings[1]}
    return _declared("ChangeGuard", "fleet", spec) if chance.random() < 0.5 else None


def _provisioner(chance: random.Random, count: int) -> Json | None:
    """Three of four stories have one, whose pool may shrink, or is kept from it."""
    least = chance.choice([0, 1, count // 2, count])
    spec = {
        "poolName": "a100",
        "minSize": least,
        "maxSize": chance.randrange(max(1, least), _MOST_NODES + 1),
        "minGPUUtilizationPercent": chance.choice([50, 80, 100]),
        "scaleDownDelay": f"{chance.choice([60, 300, 900])}s",
    }
    return _declared("NodeProvisioner", "a100", spec) if chance.random() < 0.75 else None


def _workload(chance: random.Random, at: int, nodes: int) -> ScenarioWorkload:
    ways: list[Json] = [
        {"constant": Constant(pods=chance.randrange(1, 2 * nodes))},
        {"inference": Inference(least=0, most=chance.randrange(1, 2 * nodes))},
        {"steady": Steady(per_hour=chance.randrange(1, 40)), "runs_for": Duration(30 * MINUTE_MS), "varies": "Widely"},
        {"bursts": Bursts(jobs=nodes, every=Duration(90 * MINUTE_MS)), "runs_for": Duration(20 * MINUTE_MS)},
        {"gangs": GangWorkload(pods=chance.randrange(2, 5), per_day=20), "runs_for": Duration(60 * MINUTE_MS)},
        {"mix": Mix(per_day=200)},
    ]
    return ScenarioWorkload(
        name=f"load-{at}",
        gpus=chance.choice([1, 1, 2, 4, 8]),
        priority=chance.choice([0, 0, 100]),
        tolerations=[WorkloadToleration(key="dedicated")] * chance.randrange(2),
        do_not_disrupt=chance.random() < 0.2,
        max_unavailable=chance.choice([None, None, 0, 1, 3]),
        **chance.choice(ways),
    )


def _fault(chance: random.Random) -> ScenarioFault:
    kind = chance.choice(["NodeDeath", "StockOut", "SlowApi", "LateWatch", "ControllerCrash", "ControllerAbsent"])
    lasts = None if kind in {"NodeDeath", "ControllerCrash"} else Duration(chance.randrange(1, 60) * MINUTE_MS)
    at, every = (Duration(chance.randrange(1, 200) * MINUTE_MS) for _ in range(2))
    return ScenarioFault(fault=kind, at=at, lasts=lasts, every=chance.choice([None, every]), delay=Duration(20_000))  # type: ignore[arg-type]


def _edit(chance: random.Random) -> ScenarioEdit:
    at, lasts = Duration(chance.randrange(1, 300) * MINUTE_MS), Duration(chance.randrange(5, 60) * MINUTE_MS)
    count = chance.randrange(1, 4)
    return chance.choice(
        [
            ScenarioEdit(at=at, lasts=lasts, kind="Node", pool="a100", count=count, unschedulable=True),
            ScenarioEdit(at=at, kind="Node", pool="a100", count=count, deleted=True),
            ScenarioEdit(at=at, kind="NodeClaim", pool="a100", deleted=True),
            ScenarioEdit(at=at, kind="Node", pool="a100", annotations={names.FROZEN_UNTIL: "2026-11-16T12:00:00Z"}),
            ScenarioEdit(at=at, kind="NodePool", name="a100", annotations={names.FROZEN_UNTIL: "2026-11-16T12:00:00Z"}),
            ScenarioEdit(at=at, kind="Node", pool="a100", taints=[PoolTaint(key="broken", effect="NoSchedule")]),
        ]
    )
