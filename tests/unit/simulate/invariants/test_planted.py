"""For each rule of safety: a planner that breaks it is found, its event is named, and a small scenario is left."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model import names
from reconciler.model.bundle import Text
from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.guards import Ceiling, ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.model.quantity import Duration, Quantity
from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.invariants.monitor import CHECKERS
from reconciler.simulate.runner.play import Play, Revised
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.runner.shrink import how_it_fails, shrink
from reconciler.simulate.scenario.cluster import Constant, InitialCluster, NodeSet, ScenarioWorkload
from reconciler.simulate.scenario.reading import read_scenario, scenario_text
from reconciler.simulate.scenario.spec import ScenarioEdit
from tests.lab.places import REPOSITORY
from tests.slow import long
from tests.unit.plan.manifests.stage import POLICY
from tests.unit.simulate.invariants import planted_claims as claims
from tests.unit.simulate.invariants import planted_drains as drains
from tests.unit.simulate.invariants.planted_bugs import BUGS, FOREIGN, Planted

EXAMPLE = REPOSITORY / "examples" / "taint-edit" / "scenario.yaml"
OBSERVES, FROZEN, CORDONED, OPTED_OUT, BOOKED, GUARDED = (
    "pools in Observe mode are not written",
    "frozen objects are not changed",
    "nodes that another component is removing are not touched",
    "reconciler neither taints nor deletes nodes that opt out of removal",
    "no node has pods for more GPUs than it has",
    "no guard's ceiling is passed",
)
CPU = {"cpu": Quantity.parse("4")}
EARLY = "nodes are deleted only after their delay, and 30 s after NoSchedule"
OF_ANOTHER = "reconciler removes no scheduling gate of others"
NO_ROOM = "pods that wait for capacity are ungated only when a node has room"
OUTSTAYS = "smart pods are deleted within two minutes after their node is ready"
UNSAVED = "reconciler evicts a pod with a checkpoint annotation only after its checkpoint or its time"
TOO_FEW = "reconciler brings no pool below minSize"
LATE = {OUTSTAYS, drains.GANG, claims.KEPT, claims.IDLE}  # found by whatever happens next
SLOW_TO_SHRINK = (drains.BATCH, drains.GANG, drains.PLACE, drains.EMPTY)


def play_for(rule: str) -> Play:
    """Ten minutes of the example, with one workload that is protected and more than there is room for."""
    found = prepared(SimulationRequest(EXAMPLE)).plays[0]
    gates = [FOREIGN] * (rule == OF_ANOTHER)
    gated = ScenarioWorkload(
        name="gated", gpus=16, waits_for_capacity=not gates, gates=gates, constant=Constant(pods=2)
    )
    more = [
        ScenarioWorkload(name="kept", gpus=4, do_not_disrupt=True, constant=Constant(pods=2)),
        ScenarioWorkload(
            name="saved", gpus=4, checkpoint=Duration(120_000), constant=Constant(pods=2 if rule == UNSAVED else 0)
        ),
        ScenarioWorkload(name="large", gpus=8, constant=Constant(pods=6 if rule in {BOOKED, drains.PLACE} else 0)),
        *[gated] * (rule in {OF_ANOTHER, NO_ROOM}),
        *[ScenarioWorkload(name="guarded", gpus=1, max_unavailable=0, constant=Constant(pods=1))]
        * (rule == drains.BUDGET),
        *[ScenarioWorkload(name="sparse", gpus=3, resources=CPU, constant=Constant(pods=10))] * (rule == drains.BATCH),
    ]
    scenario = msgspec.structs.replace(
        found.scenario,
        duration=Duration(600_000),
        workloads=[*found.scenario.workloads, *more],
        policies=found.scenario.policies[:1],
        cluster=InitialCluster(
            nodes=[NodeSet(pool="a100", count=22 if rule in {GUARDED, drains.BATCH} else 12)],
            objects=objects_for(rule),
        ),
        edits=edits_for(rule),
        expect=[],
    )
    desired = desired_for(rule, found.first)
    if rule in claims.BUGS:
        scenario, desired = claims.scenario_for(scenario, FOREIGN), claims.with_agents(desired)
    return msgspec.structs.replace(found, scenario=scenario, revisions=(Revised(0, desired),))


def edits_for(rule: str) -> list[ScenarioEdit]:
    minute = Duration(60_000)
    frozen = ScenarioEdit(at=minute, kind="Node", pool="a100", annotations={names.FROZEN_UNTIL: "2030-01-01T00:00:00Z"})
    cordoned = ScenarioEdit(at=minute, kind="Node", pool="a100", unschedulable=True)
    opted_out = ScenarioEdit(at=minute, kind="Node", pool="a100", annotations={names.SCALE_DOWN_DISABLED: "true"})
    return [frozen] * (rule == FROZEN) + [cordoned] * (rule == CORDONED) + [opted_out] * (rule == OPTED_OUT)


def objects_for(rule: str) -> list[str]:
    if rule == drains.ANEW:
        owner = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "name": "flow",
            "uid": "1",
            "controller": True,
        }
        return [a_pod("flow-0", ownerReferences=[owner])]
    return [*gang()] if rule == drains.GANG else []


def a_pod(name: str, **more: Any) -> str:
    metadata = {"name": name, "namespace": "default", **more}
    spec = {"containers": [{"name": "main"}]}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def gang() -> Iterator[str]:
    """Two pods, and the claims by which they are of one gang."""
    for number in range(2):
        claim = f"claim-{number}"
        yield a_pod(f"gang-{number}", annotations={names.CLAIM: claim, names.SAFE_TO_EVICT: "true"})
        head = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim"}
        metadata = {"name": claim, "namespace": "default"}
        yield yaml.safe_dump({**head, "metadata": metadata, "spec": {"gangRef": "train"}})


def drained(rule: str) -> tuple[Declared[DrainPolicy], ...]:
    """Nothing is little enough used for the real planner, but where a batch is to begin."""
    if rule not in {drains.GANG, drains.ANEW, drains.EMPTY, drains.SLOTS, drains.BATCH}:
        return ()
    percent = 50 if rule == drains.BATCH else 0
    spec = DrainPolicy(
        pool_names=["a100"],
        utilization_threshold_percent=percent,
        max_drain_parallelism=2,
        max_scale_down_parallelism=2,
        scale_down_unneeded_time=Duration(0 if rule == drains.BATCH else 3_600_000),
    )
    return (Declared("DrainPolicy", "drains", spec, (("", POLICY),)),)


def desired_for(rule: str, desired: Desired) -> Desired:
    guard = ChangeGuard(pool_names=["*"], per_plan=Ceiling(max_removed_nodes=2))
    declared = Declared("ChangeGuard", "fleet", guard, (("", POLICY),))
    mode = "Observe" if rule == OBSERVES else "Enforce"
    pools = [
        msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, mode=mode)) for each in desired.pools
    ]
    is_scaled = rule in {EARLY, TOO_FEW, drains.LEAST}
    scaled = provisioners(0 if rule == EARLY else 12) if is_scaled else desired.provisioners
    parts = {"pools": tuple(pools), "guards": (declared,), "provisioners": scaled, "drains": drained(rule)}
    return msgspec.structs.replace(desired, **parts)


def provisioners(min_size: int) -> tuple[Declared[NodeProvisioner], ...]:
    wish = NodeProvisioner(pool_name="a100", min_size=min_size, max_size=40, min_gpu_utilization_percent=50)
    return (Declared("NodeProvisioner", "a100", wish, (("", POLICY),)),)


def planted(rule: str, each: Play) -> Simulated:
    return run(each, RunOptions(brain=lambda: Planted(BUGS[rule]), stops_when_broken=True))


def test_there_is_a_bug_for_each_rule() -> None:
    assert {make().rule for make in CHECKERS} == set(BUGS)


@pytest.mark.parametrize("rule", BUGS)
def test_a_planner_that_breaks_it_is_found(rule: str) -> None:
    whole = play_for(rule)
    assert run(whole).broken == (), "the real planners break nothing"
    found = planted(rule, whole)
    assert rule in {each.rule for each in found.broken}
    assert {each.event for each in found.broken} == {"a cycle"} or rule in LATE


@pytest.mark.parametrize("rule", [long(each) if each in SLOW_TO_SHRINK else each for each in BUGS])
def test_what_fails_is_made_small(rule: str) -> None:
    whole = play_for(rule)
    small = shrink(whole, lambda each: rule in how_it_fails(planted(rule, each)), most_tries=60)
    assert size(small) <= size(whole) // 3
    again = read_scenario(Text("small.yaml", scenario_text("small", small.scenario).encode()))
    assert again.problems == ()
    assert again.scenario is not None
    assert rule in how_it_fails(planted(rule, msgspec.structs.replace(small, scenario=again.scenario)))


def size(each: Play) -> int:
    """Workloads, edits and nodes."""
    scenario = each.scenario
    return 3 * len(scenario.workloads) + len(scenario.edits) + sum(group.count for group in scenario.cluster.nodes)
