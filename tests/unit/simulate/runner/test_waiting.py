"""Plays in which pods wait behind gates: nothing is bought for them, and smart pods are counted as what they are."""

import msgspec

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model import names
from reconciler.model.bundle import Text
from reconciler.model.instant import Instant
from reconciler.model.quantity import Duration
from reconciler.simulate.results.meter import RunMeter
from reconciler.simulate.results.totals import SMART
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.scenario.reading import read_scenario
from reconciler.simulate.stage import Engine, Stage
from reconciler.simulate.world import World
from tests.lab.places import REPOSITORY
from tests.unit.simulate.invariants.planted_bugs import FOREIGN, Planted, lifts_its_gate_without_room
from tests.unit.simulate.stage import START, node, pod

EXAMPLE = REPOSITORY / "examples" / "taint-edit" / "scenario.yaml"
STORY = """\
apiVersion: gpu.scheduling/v1
kind: Scenario
metadata: {name: waiting}
spec:
  duration: 30m
  policies: [{folder: policies/before}]
  workloads:
    - {name: foreign, gpus: 8, gates: [other.example.com/gate], constant: {pods: 2}}
  edits:
    - at: 10m
      kind: Pod
      count: 9
      having: {gpu.scheduling/simulated-workload: foreign}
      lifts: other.example.com/gate
"""


def play() -> Play:
    found = prepared(SimulationRequest(EXAMPLE)).plays[0]
    read = read_scenario(Text("s.yaml", STORY.encode()))
    assert read.problems == ()
    assert read.scenario is not None
    return msgspec.structs.replace(found, scenario=read.scenario, revisions=found.revisions[:1])


def test_what_another_holds_back_buys_nothing_until_the_other_lets_it_go() -> None:
    whole = play()
    held = msgspec.structs.replace(whole, scenario=msgspec.structs.replace(whole.scenario, edits=[]))
    assert run(held).sums.nodes_bought == 0
    found = run(whole)
    assert (found.sums.nodes_bought, found.sums.pending_pods) == (2, 0)
    assert [each.text for each in found.happenings] == [f"2 Pods: gate {FOREIGN} removed, by a user"]
    assert found == run(whole)


def test_what_is_let_go_without_room_breaks_a_rule() -> None:
    whole = play()
    workloads = [msgspec.structs.replace(each, gates=[], waits_for_capacity=True) for each in whole.scenario.workloads]
    scenario = msgspec.structs.replace(whole.scenario, workloads=workloads, edits=[], duration=Duration(300_000))
    gated = msgspec.structs.replace(whole, scenario=scenario)
    found = run(gated, RunOptions(brain=lambda: Planted(lifts_its_gate_without_room)))
    assert [each.rule for each in found.broken] == [
        "pods that wait for capacity are ungated only when a node has room"
    ] * 2


def test_a_smart_pod_neither_waits_nor_is_done_nor_lost() -> None:
    world = World(START)
    stage = Stage(Engine(1, START), world)
    world.put(node("n1"))
    smart = pod("smart", gpus=8)
    smart["metadata"]["labels"] = {names.COMPONENT: SMART}
    world.put(smart)
    wish = prepared(SimulationRequest(EXAMPLE)).plays[0].first
    meter = RunMeter(stage, wish, ())
    assert meter.sums().pending_pods == 0
    world.put({**smart, "spec": {**smart["spec"], "nodeName": "n1"}, "status": {"phase": "Failed"}})
    stage.engine.run(Instant(START + 60_000))
    sums = meter.sums()
    assert (sums.pending_pods, sums.gpu_ms_pending, sums.finished_pods, sums.lost_pods) == (0, 0, 0, 0)
