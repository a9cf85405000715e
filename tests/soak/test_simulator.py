"""Stories drawn by chance: in none of them do the real planners break a rule; and each seed tells the same again."""

import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from reconciler.model import names
from reconciler.model.desired import Declared, Desired
from reconciler.model.kinds.change_guard import Ceiling, ChangeGuard
from reconciler.model.kinds.gpu_pool import Taint
from reconciler.model.quantity import Duration
from reconciler.simulate.playing.play import Play, Revised
from reconciler.simulate.playing.staging import run
from reconciler.simulate.scenario.cluster import Beginning, Nodes
from reconciler.simulate.scenario.edit import Edit
from reconciler.simulate.scenario.fault import Fault
from reconciler.simulate.scenario.mix import Mix
from reconciler.simulate.scenario.workload import Bursts, Constant, Gangs, Inference, Steady, Toleration, Workload
from reconciler.wiring.simulated.reading import Asked, prepared
from tests.lab.places import REPOSITORY
from tests.results.record import Recorder, Result
from tests.unit.manifests_stage import POLICY

STORIES, SEED = 40, 1
SEEDS = 12
EXAMPLE = REPOSITORY / "examples" / "taint-edit" / "scenario.yaml"
MINUTE_MS = 60_000
HOURS = 6


@pytest.mark.soak
def test_real_planners_break_no_rule(recorder: Recorder) -> None:
    broken, writes, evictions = [], 0, 0
    for number in range(STORIES):
        told = run(drawn(number))
        broken += [f"story {number}: {each.rule}: {each.sentence} ({each.event})" for each in told.broken]
        broken += [f"story {number}: trouble: {each}" for each in told.troubles]
        writes, evictions = writes + told.sums.actions, evictions + told.sums.evictions
    what = "stories drawn by chance in which a rule of safety was broken, or a cycle came to nothing"
    figures: dict[str, float | int | str] = {"writes_of_ours": writes, "evictions": evictions}
    failures = len({each.partition(":")[0] for each in broken})
    recorder.write(Result("soak-simulated-stories", what, STORIES, failures, SEED, figures))
    assert broken == []
    assert writes > STORIES // 2
    assert evictions > 0


@pytest.mark.soak
def test_every_seed_tells_the_same_in_every_process(recorder: Recorder) -> None:
    differ = [seed for seed in range(SEEDS) if len({told(seed, hashes) for hashes in (1, 2, 3)}) > 1]
    what = "seeds with which processes that hash texts otherwise told another story"
    recorder.write(Result("soak-simulated-bytes", what, SEEDS, len(differ), SEED))
    assert differ == []


def told(seed: int, hash_seed: int) -> bytes:
    command = [sys.executable, "-m", "reconciler", "simulate", str(EXAMPLE), "--seed", str(seed), "-o", "json"]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, capture_output=True, cwd=Path(REPOSITORY), env=environment, check=False)
    assert done.returncode in {0, 1}, done.stderr.decode()
    return done.stdout


def drawn(number: int) -> Play:
    """Six hours: a pool, edited once or twice, with loads, faults and hands of others."""
    chance = random.Random(f"{SEED}/{number}")
    found = prepared(Asked(EXAMPLE)).plays[0]
    count = chance.randrange(3, 25)
    scenario = msgspec.structs.replace(
        found.scenario,
        duration=Duration(HOURS * 60 * MINUTE_MS),
        cycle_every=Duration(chance.choice([1_000, 5_000, 30_000])),
        cluster=Beginning(nodes=[Nodes(pool="a100", count=count)]),
        workloads=[workload(chance, at, count) for at in range(chance.randrange(1, 5))],
        faults=[fault(chance) for _ in range(chance.randrange(4))],
        edits=[edit(chance) for _ in range(chance.randrange(4))],
        expect=[],
    )
    guard = ChangeGuard(
        pool_names=["*"],
        per_plan=Ceiling(max_removed_nodes=chance.randrange(0, 30), max_disrupted_gpus=chance.randrange(0, 200)),
        per_hour=Ceiling(max_removed_nodes=chance.randrange(0, 30), max_disrupted_gpus=chance.randrange(0, 300)),
    )
    guards = (Declared("ChangeGuard", "fleet", guard, (("", POLICY),)),) * (chance.random() < 0.5)
    modes = chance.choices(["Enforce", "Observe"], [6, 1], k=len(found.revisions))
    revisions = tuple(
        Revised(each.after_ms, with_mode(each.desired, mode, guards))
        for each, mode in zip(found.revisions, modes, strict=True)
    )
    return msgspec.structs.replace(found, scenario=scenario, revisions=revisions, seed=number)


def with_mode(desired: Desired, mode: str, guards: tuple[Declared[ChangeGuard], ...]) -> Desired:
    pools = [
        msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, mode=mode)) for each in desired.pools
    ]
    return msgspec.structs.replace(desired, pools=tuple(pools), guards=guards)


def workload(chance: random.Random, at: int, nodes: int) -> Workload:
    ways: list[dict[str, object]] = [
        {"constant": Constant(pods=chance.randrange(1, 2 * nodes))},
        {"inference": Inference(least=0, most=chance.randrange(1, 2 * nodes))},
        {"steady": Steady(per_hour=chance.randrange(1, 40)), "runs_for": Duration(30 * MINUTE_MS), "varies": "Widely"},
        {"bursts": Bursts(jobs=nodes, every=Duration(90 * MINUTE_MS)), "runs_for": Duration(20 * MINUTE_MS)},
        {"gangs": Gangs(pods=chance.randrange(2, 5), per_day=20), "runs_for": Duration(60 * MINUTE_MS)},
        {"mix": Mix(per_day=200)},
    ]
    return Workload(
        name=f"load-{at}",
        gpus=chance.choice([1, 1, 2, 4, 8]),
        priority=chance.choice([0, 0, 100]),
        tolerations=[Toleration(key="dedicated")] * chance.randrange(2),
        do_not_disrupt=chance.random() < 0.2,
        max_unavailable=chance.choice([None, None, 0, 1, 3]),
        **chance.choice(ways),  # type: ignore[arg-type]
    )


def fault(chance: random.Random) -> Fault:
    kind = chance.choice(["NodeDeath", "StockOut", "SlowApi", "LateWatch", "ControllerCrash", "ControllerAbsent"])
    lasts = None if kind in {"NodeDeath", "ControllerCrash"} else Duration(chance.randrange(1, 60) * MINUTE_MS)
    at, every = (Duration(chance.randrange(1, 200) * MINUTE_MS) for _ in range(2))
    return Fault(fault=kind, at=at, lasts=lasts, every=chance.choice([None, every]), delay=Duration(20_000))  # type: ignore[arg-type]


def edit(chance: random.Random) -> Edit:
    at, lasts = Duration(chance.randrange(1, 300) * MINUTE_MS), Duration(chance.randrange(5, 60) * MINUTE_MS)
    count = chance.randrange(1, 4)
    return chance.choice(
        [
            Edit(at=at, lasts=lasts, kind="Node", pool="a100", count=count, unschedulable=True),
            Edit(at=at, kind="Node", pool="a100", count=count, deleted=True),
            Edit(at=at, kind="NodeClaim", pool="a100", deleted=True),
            Edit(at=at, kind="Node", pool="a100", annotations={names.FROZEN_UNTIL: "2026-11-16T12:00:00Z"}),
            Edit(at=at, kind="NodePool", name="a100", annotations={names.FROZEN_UNTIL: "2026-11-16T12:00:00Z"}),
            Edit(at=at, kind="Node", pool="a100", taints=[Taint(key="broken", effect="NoSchedule")]),
        ]
    )
