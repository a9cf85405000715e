"""What fails is made as small as it can be: counts, times, expectations; and a story of a soak is left in a file."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model.quantity import Duration
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.runner.shrink import shrink
from reconciler.simulate.scenario.cluster import GangWorkload, Inference, InitialCluster, ScenarioWorkload
from reconciler.simulate.scenario.spec import Expectation, Scenario, ScenarioEdit, ScenarioFault
from tests.lab.places import REPOSITORY
from tests.slow import long
from tests.stages.stories.drawn import drawn
from tests.stages.stories.left import left_of, unsafe
from tests.unit.simulate.invariants.planted_bugs import BUGS, Planted

MINUTE = Duration(60_000)
EXAMPLE = REPOSITORY / "examples" / "taint-edit" / "scenario.yaml"
OPENB = REPOSITORY / "tests" / "cases" / "openb" / "scenario.yaml"
# Rules that only matter where a NodeProvisioner sizes the pool.
OF_SCALING = (
    "nodes are deleted only after their delay, and 30 s after NoSchedule",
    "reconciler brings no pool below minSize",
    long("reconciler taints no node in use for deletion"),
)


def play(**changes: Any) -> Play:
    found = prepared(SimulationRequest(EXAMPLE)).plays[0]
    return msgspec.structs.replace(found, scenario=msgspec.structs.replace(found.scenario, **changes))


def left(whole: Play, kept: str) -> Scenario:
    """What is left where nothing must stay but one such thing."""
    return shrink(whole, lambda smaller: bool(getattr(smaller.scenario, kept)), most_tries=500).scenario


def test_objects_that_were_applied_are_left_out_one_by_one() -> None:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
    whole = play(cluster=InitialCluster(objects=[f"{head}{name}}}\n" for name in "abcde"]))
    small = shrink(whole, lambda each: any("name: c" in text for text in each.scenario.cluster.objects))
    assert small.scenario.cluster.objects == [f"{head}c}}\n"]


def test_replicas_and_gangs_become_few() -> None:
    replicas = ScenarioWorkload(name="web", gpus=1, inference=Inference(least=6, most=40))
    (web,) = left(play(workloads=[replicas]), "workloads").workloads
    assert web.inference == Inference(least=0, most=1)
    gangs = ScenarioWorkload(name="train", gpus=8, runs_for=MINUTE, gangs=GangWorkload(pods=9, per_day=30))
    (train,) = left(play(workloads=[gangs]), "workloads").workloads
    assert train.gangs == GangWorkload(pods=2, per_day=1)


def test_faults_come_once_and_edits_hit_one() -> None:
    deaths = ScenarioFault(fault="NodeDeath", at=MINUTE, every=MINUTE, count=9)
    assert left(play(faults=[deaths]), "faults").faults == [ScenarioFault(fault="NodeDeath", at=MINUTE)]
    cordon = ScenarioEdit(at=MINUTE, kind="Node", count=9, unschedulable=True)
    assert left(play(edits=[cordon]), "edits").edits == [ScenarioEdit(at=MINUTE, kind="Node", unschedulable=True)]


def test_of_expectations_those_that_fail_are_left() -> None:
    met, failed = (Expectation(measure="nodes", at_least=least) for least in (0, 99))
    small = shrink(play(expect=[met, failed, met]), lambda smaller: failed in smaller.scenario.expect, most_tries=500)
    assert small.scenario.expect == [failed]


def test_the_nodes_of_a_trace_go_where_they_do_not_matter() -> None:
    whole = prepared(SimulationRequest(OPENB)).plays[0]
    assert whole.machines
    small = shrink(whole, lambda _: True)
    assert (small.machines, small.scenario.cluster.openb_nodes) == ((), "")


@pytest.mark.parametrize("rule", OF_SCALING)
def test_drawn_stories_can_break_the_rules_of_scaling_and_what_is_left_can_be_played(tmp_path: Path, rule: str) -> None:
    def faults(story: Play) -> frozenset[str]:
        brain = RunOptions(brain=lambda: Planted(BUGS[rule]), stops_when_broken=True)
        return unsafe(run(story, brain)) & {rule}

    whole = next(story for story in (drawn(tmp_path, number) for number in range(20)) if faults(story))
    file = tmp_path / "small.yaml"
    assert left_of(whole, faults, file) == f"{rule}: reconciler simulate {file}"
    (small,) = prepared(SimulationRequest(file)).plays
    assert faults(small) == {rule}
    assert small.scenario.duration < whole.scenario.duration
    assert small.first.provisioners
