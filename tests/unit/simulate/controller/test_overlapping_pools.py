"""Pods that fit several pools: each is served once, and by the next pool where the first can't."""

from pathlib import Path

import pytest

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.report.simulation.simulated import Simulated
from tests.stages.stories.waiting import waited

POLICIES = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: a100}
spec:
  mode: Enforce
  devices: {model: a100, count: 8, memory: 40Gi}
  instanceTypes: [{name: p4d.24xlarge, capacity: {cpu: 96, memory: 1152Gi, pods: 250}, pricePerHour: {on-demand: "20"}}]
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
---
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {name: a100}
spec: {poolName: a100, minSize: 0, maxSize: @MOST@, minGPUUtilizationPercent: 50, order: 1}
---
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: l4}
spec:
  mode: Enforce
  devices: {model: l4, count: 8, memory: 24Gi}
  instanceTypes: [{name: g6.48xlarge, capacity: {cpu: 192, memory: 768Gi, pods: 250}, pricePerHour: {on-demand: "10"}}]
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
---
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {name: l4}
spec: {poolName: l4, minSize: 0, maxSize: 50, minGPUUtilizationPercent: 50, order: 200}
"""
SCENARIO = """\
apiVersion: gpu.scheduling/v1
kind: Scenario
metadata: {name: overlapping}
spec:
  duration: 30m
  policies: [{folder: policies}]
  workloads: [{name: training, gpus: 8, waitsForCapacity: @GATED@, constant: {pods: 3}}]
  faults: [@FAULTS@]
"""
OUT_OF_STOCK = "{fault: NotOffered, at: 0s, lasts: 30m, instanceType: p4d.24xlarge}"


def played(folder: Path, most: int, is_gated: bool, faults: str = "") -> Simulated:
    (folder / "policies").mkdir()
    (folder / "policies" / "pools.yaml").write_text(POLICIES.replace("@MOST@", str(most)))
    scenario = SCENARIO.replace("@GATED@", str(is_gated).lower()).replace("@FAULTS@", faults)
    (folder / "scenario.yaml").write_text(scenario)
    (play,) = prepared(SimulationRequest(folder / "scenario.yaml")).plays
    return waited(play).simulated


@pytest.mark.parametrize(
    ("most", "is_gated", "faults"),
    [
        pytest.param(50, False, "", id="Karpenter buys in the pool that it chooses, and nothing is asked for besides"),
        pytest.param(1, True, "", id="where the first pool is full the next is asked"),
        pytest.param(1, False, "", id="also for pods that Karpenter sees"),
        pytest.param(50, True, OUT_OF_STOCK, id="where the first pool is out of stock the next is asked"),
    ],
)
def test_as_many_nodes_are_bought_as_pods_wait_for(most: int, is_gated: bool, faults: str, tmp_path: Path) -> None:
    simulated = played(tmp_path, most, is_gated, faults)
    assert (simulated.sums.nodes_bought, simulated.sums.pending_pods) == (3, 0)
    assert max(step.longest_wait_seconds for step in simulated.steps) < 300
