"""Each alert fires in a scenario of its own, in time, and all are silent on a quiet day."""

from pathlib import Path

import pytest

from tests.lab.places import REPOSITORY
from tests.stages.alerting import fired, rules
from tests.stages.promql import Labels, evaluate

POLICIES = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {{name: a100}}
spec:
  mode: Enforce
  devices: {{model: a100, count: 8, memory: 40Gi}}
  instanceTypes: [{{name: p4d.24xlarge, capacity: {{cpu: 96, memory: 1152Gi}}, pricePerHour: {{on-demand: "20"}}}}]
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}}
  smartPods: {{activeDeadlineSeconds: {deadline}}}
---
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {{name: a100}}
spec: {{poolName: a100, minSize: 0, maxSize: 50, minGPUUtilizationPercent: 50}}
"""
SCENARIO = """\
apiVersion: gpu.scheduling/v1
kind: Scenario
metadata: {{name: story}}
spec:
  duration: {duration}
  policies: [{{folder: policies}}]
  workloads: [{{name: training, gpus: 8, waitsForCapacity: true, constant: {{pods: 2}}}}]
  {trouble}
"""
STOCK_OUT = "faults: [{fault: StockOut, at: 0s, lasts: 90m, instanceType: p4d.24xlarge}]"


def story(folder: Path, trouble: str, duration: str, deadline: int = 600) -> Path:
    (folder / "policies").mkdir()
    (folder / "policies" / "pool.yaml").write_text(POLICIES.format(deadline=deadline))
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO.format(trouble=trouble, duration=duration))
    return path


def test_an_attempt_that_waits_for_a_machine_that_does_not_boot(tmp_path: Path) -> None:
    found = fired(story(tmp_path, "market: {registrationDelay: 14m}", "1h"))
    assert 480 <= found["ReconcilerSmartPodsPendingForLong"] <= 600


def test_machines_that_are_out_of_stock(tmp_path: Path) -> None:
    found = fired(story(tmp_path, STOCK_OUT, "2h"))
    assert found["ReconcilerNodeClaimsFail"] <= 2700


def test_nodes_that_take_long_until_they_can_be_used(tmp_path: Path) -> None:
    found = fired(story(tmp_path, "market: {initializationDelay: 12m}", "2h", deadline=1800))
    assert "ReconcilerScalingIsSlow" in found


def test_attempts_that_nobody_clears_away(tmp_path: Path) -> None:
    freeze = 'annotations: {gpu.scheduling/frozen-until: "2030-01-01T00:00:00Z"}'
    trouble = f"{STOCK_OUT}\n  edits: [{{at: 20s, kind: NodePool, name: a100, {freeze}}}]"
    found = fired(story(tmp_path, trouble, "1h"))
    assert 600 <= found["ReconcilerSmartPodsLeftOver"] <= 1200


@pytest.mark.parametrize("name", ["quiet-day", "scenario-c"])
def test_all_are_silent_where_nothing_is_wrong(name: str) -> None:
    assert fired(REPOSITORY / "examples" / name / "scenario.yaml") == {}


# Samples by their age in seconds, of a replica that leads: each series makes its alert fire, and no other.
SAMPLES: dict[str, list[tuple[str, str, dict[int, float]]]] = {
    "ReconcilerNobodyLeads": [("reconciler_leaderless", "", {60: 1, 0: 1})],
    "ReconcilerCyclesComeToNothing": [
        ("reconciler_cycles_total", "result=trouble", {800: 0, 0: 9}),
        ("reconciler_cycles_total", "result=fine", {800: 5, 0: 5}),
    ],
    "ReconcilerPlannerFails": [("reconciler_planner_failures_total", "planner=drain pool=b", {800: 0, 0: 9})],
    "ReconcilerObjectsSetAside": [
        ("reconciler_set_aside_objects", "kind=Pod reason=Quantity", {0: 1}),
        ("reconciler_leads", "", {0: 1}),
    ],
}
LATER = 10_000


def firing(samples: list[tuple[str, str, dict[int, float]]]) -> set[str]:
    series: dict[tuple[str, Labels], list[tuple[float, float]]] = {}
    for name, told, values in samples:
        labels = frozenset(("instance=a " + told).split())
        pairs = frozenset((key, value) for key, _, value in (each.partition("=") for each in labels))
        series[name, pairs] = sorted((LATER - age, value) for age, value in values.items())
    return {rule["alert"] for rule in rules() if evaluate(rule["expr"], series, LATER)}


@pytest.mark.parametrize("alert", SAMPLES)
def test_trouble_with_planning_fires_its_alert_alone(alert: str) -> None:
    assert firing(SAMPLES[alert]) == {alert}
    assert firing([(name, told, dict.fromkeys(values, 0.0)) for name, told, values in SAMPLES[alert]]) == set()


def test_there_is_a_story_for_each_alert() -> None:
    text = Path(__file__).read_text()
    assert all(f'"{rule["alert"]}"' in text for rule in rules())
