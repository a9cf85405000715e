"""Pools and workloads drawn at random for an imagined cluster, and what came of them, plan by plan.

What comes and goes does so in the first hour and a half; after that the load stays as it is until the end.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Delete, Evict, Taint
from reconciler.model.plan.evaluation import ScalingReport, SizeEvaluation
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.report.simulation.simulated import PoolStep, Simulated
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run

Json = dict[str, Any]

STARTS = "2026-11-16T08:00:00Z"
_POOLS = {"a100": ("p4d.24xlarge", 8), "l4": ("g6.12xlarge", 4)}
_SMALLER = ("p4de.half", 4)
_PODS = 60  # the most of one workload


class Told(msgspec.Struct, frozen=True):
    """What was done to a node, and when."""

    at: Instant
    node: str
    did: str  # mark, harden, keep, delete
    reason: str


class Outcome(msgspec.Struct, frozen=True):
    """A play, and what came of it."""

    play: Play
    simulated: Simulated
    told: tuple[Told, ...]
    sizes: tuple[tuple[SizeEvaluation, ...], ...]  # of each plan
    evicted: Counter[str]  # how many pods we asked to leave, by the code of the reason

    def wish(self, pool: str) -> NodeProvisioner:
        return next(each.spec for each in self.play.first.provisioners if each.spec.pool_name == pool)

    @property
    def pools(self) -> tuple[PoolStep, ...]:
        """How they stand at the end."""
        return self.simulated.steps[-1].pools

    def when(self, seconds: int) -> Instant:
        return Instant(self.play.start + 1_000 * seconds)


class _Listener:
    """A Publisher."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.sizes: list[tuple[SizeEvaluation, ...]] = []
        self.evicted: Counter[str] = Counter()

    def publish(self, cycled: CycleResult) -> None:
        if cycled.plan is None:
            return
        self.sizes.append(cycled.plan.report(ScalingReport).sizes)
        done = {each.subject for each in cycled.outcomes if each.result == "done"}
        for each in cycled.plan.decisions:
            if each.subject in done and isinstance(each.act, Delete | Taint) and each.subject.kind == "Node":
                self.told.append(Told(cycled.at, each.subject.name, _verb(each.act), each.reason.code))
            self.evicted[each.reason.code] += each.subject in done and isinstance(each.act, Evict)


def _verb(act: Delete | Taint) -> str:
    if isinstance(act, Delete):
        return "delete"
    return "keep" if act.value is None else "mark" if act.effect == "PreferNoSchedule" else "harden"


def played(folder: Path, policies: list[Json], scenario: Json, seed: int = 1) -> Outcome:
    return outcome_of(play_of(folder, policies, scenario, seed))


def play_of(folder: Path, policies: list[Json], scenario: Json, seed: int = 1) -> Play:
    """As the command would read it."""
    written = [{"files": {"all.yaml": yaml.safe_dump_all(policies)}}]
    spec = {"start": STARTS, "policies": written, "seed": seed, **scenario}
    head = {"apiVersion": "gpu.scheduling/v1", "kind": "Scenario", "metadata": {"name": "drawn"}}
    (folder / "scenario.yaml").write_text(yaml.safe_dump({**head, "spec": spec}))
    read = prepared(SimulationRequest(folder / "scenario.yaml"))
    assert read.plays, read.checkup.resolved.problems
    (play,) = read.plays
    return play


def outcome_of(play: Play) -> Outcome:
    listener = _Listener()
    simulated = run(play, RunOptions(publishers=(listener,)))
    return Outcome(play, simulated, tuple(listener.told), tuple(listener.sizes), listener.evicted)


def drawn(folder: Path, seed: int, *more: Json) -> Outcome:
    """The same seed gives the same; with more policies."""
    chance = Random(f"scaling/{seed}")
    names = ["a100"] if chance.random() < 0.6 else ["a100", "l4"]
    counts = {name: chance.randint(3, 20) for name in names}
    policies = [policy for name in names for policy in _policies(chance, name, counts[name])] + list(more)
    workloads = [each for name in names for each in _workloads(chance, name, counts[name])]
    scenario = {
        "duration": "4h",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": name, "count": count} for name, count in counts.items()]},
        "workloads": workloads,
        "faults": _faults(chance),
    }
    return played(folder, policies, scenario, seed)


def pool(name: str, *more: tuple[str, int]) -> Json:
    sorts = [_POOLS[name], *more]
    machines = [
        {
            "name": machine,
            "capacity": {"cpu": 12 * gpus, "memory": f"{64 * gpus}Gi", "pods": 110, "nvidia.com/gpu": gpus},
            "pricePerHour": {"on-demand": f"{gpus}.50"},
        }
        for machine, gpus in sorts
    ]
    return {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuPool",
        "metadata": {"name": name},
        "spec": {
            "mode": "Enforce",
            "devices": {"model": name, "count": sorts[0][1], "memory": "40Gi"},
            "instanceTypes": machines,
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name},
        },
    }


def provisioner(name: str, **spec: Any) -> Json:
    head = {"apiVersion": "gpu.scheduling/v1", "kind": "NodeProvisioner", "metadata": {"name": name}}
    usual = {"poolName": name, "minSize": 0, "maxSize": 100, "minGPUUtilizationPercent": 80}
    return {**head, "spec": usual | spec}


def _policies(chance: Random, name: str, count: int) -> list[Json]:
    is_mixed = name == "a100" and chance.random() < 0.25
    is_tight = chance.random() < 0.25
    sized = provisioner(
        name,
        minSize=chance.randint(0, 4),
        maxSize=max(5, count + chance.randint(-2, 2)) if is_tight else 200,
        minGPUUtilizationPercent=chance.choice([0, 50, 70, 80, 80, 90, 100]),
        minUnutilizedGPUNodes=chance.choice([0, 0, 1, 3]),
        scaleDownDelay=f"{chance.choice([0, 60, 61, 300, 600, 900])}s",
    )
    return [pool(name, *([_SMALLER] if is_mixed else [])), sized]


def _workloads(chance: Random, name: str, count: int) -> list[Json]:
    """Each takes at most a part of the pool, so that what always runs has room there."""
    gpus = _POOLS[name][1]
    here = {"nodeSelector": {"karpenter.sh/nodepool": name}}

    def some(part: float) -> tuple[int, int]:
        each = chance.choice([wanted for wanted in (1, 2, 4, 8) if wanted <= gpus])
        return each, chance.randint(0, max(1, min(_PODS, int(part * count * gpus) // each)))

    found: list[Json] = []
    for number, (begins, ends) in enumerate([(0, 0), (0, chance.randint(10, 60)), (chance.randint(5, 60), 0)]):
        each, pods = some(0.4)
        found.append({"name": f"{name}-{number}", "gpus": each, "constant": {"pods": pods}, **here})
        found[-1] |= ({"begins": f"{begins}m"} if begins else {}) | ({"ends": f"{ends}m"} if ends else {})
    each, jobs = some(0.5)
    if jobs:
        runs = {"runsFor": f"{chance.randint(2, 20)}m", "varies": "Mildly", "ends": "80m"}
        bursts = {"jobs": jobs, "every": f"{chance.randint(10, 60)}m"}
        found.append({"name": f"{name}-jobs", "gpus": each, "bursts": bursts, **runs, **here})
    return found


def _faults(chance: Random) -> list[Json]:
    faults: list[Json] = [
        {"fault": "ControllerCrash", "at": "20m", "every": "23m"},
        {"fault": "LateWatch", "at": "10m", "lasts": "40m", "delay": "20s"},
        {"fault": "SlowApi", "at": "10m", "lasts": "40m", "delay": "10s"},
        {"fault": "ControllerAbsent", "at": f"{chance.randint(0, 60)}m", "lasts": "30m"},
        {"fault": "NodeDeath", "at": f"{chance.randint(0, 60)}m", "count": chance.randint(1, 3)},
        {"fault": "StockOut", "at": "0m", "lasts": "50m"},
    ]
    return [each for each in faults if chance.random() < 0.2]
