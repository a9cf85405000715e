"""The story that is measured: two pools and all that happens to them, as a file that `reconciler simulate` could play.

Three nodes of four are of a pool that a NodeProvisioner sizes, with jobs of all sizes; the others are of a pool that
Karpenter empties by itself, so that machines come and go all day. Nodes die, machines are out of stock, the controller
crashes, and on the second day somebody edits a label, so that Karpenter replaces every node of the smaller pool.
"""

from pathlib import Path

import msgspec

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.simulate.runner.play import Play

_POLICIES = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {{name: a100}}
spec:
  mode: Enforce
  devices: {{model: a100, count: 8, memory: 40Gi}}
  instanceTypes:
    - {{name: p4d.24xlarge, capacity: {{cpu: 96, memory: 1152Gi, pods: 250}}, pricePerHour: {{on-demand: "21.96"}}}}
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-a100}}
  taints: [{{key: nvidia.com/gpu, value: "true", effect: NoSchedule}}]
  limits: {{nodes: {most_a100}}}
---
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {{name: a100}}
spec: {{poolName: a100, minSize: {a100}, maxSize: {most_a100}, minGPUUtilizationPercent: 70}}
---
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {{name: l4}}
spec:
  mode: Enforce
  devices: {{model: l4, count: 4, memory: 24Gi}}
  instanceTypes:
    - {{name: g6.12xlarge, capacity: {{cpu: 48, memory: 192Gi, pods: 250}}, pricePerHour: {{on-demand: "4.60"}}}}
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-l4}}
  labels: {{team: "{team}"}}
  disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: 10m}}
  limits: {{nodes: {most_l4}}}
---
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {{name: fleet}}
spec:
  poolNames: ["*"]
  perPlan: {{maxRemovedNodes: 40, maxDisruptedGPUs: 2000}}
  perHour: {{maxRemovedNodes: 80, maxDisruptedGPUs: 4000}}
"""

_SCENARIO = """\
apiVersion: gpu.scheduling/v1
kind: Scenario
metadata: {{name: fleet}}
spec:
  duration: {minutes}m
  cycleEvery: 30s
  policies:
    - {{folder: before, revision: before}}
    - {{folder: after, revision: after, at: {edited}m}}
  cluster:
    nodes: [{{pool: a100, count: {a100}}}, {{pool: l4, count: {l4}}}]
  workloads:
    - name: training
      resources: {{cpu: 4, memory: 32Gi}}
      tolerations: [{{key: nvidia.com/gpu}}]
      mix: {{perDay: {mix}}}
    - name: pretraining
      gpus: 8
      priority: 100
      tolerations: [{{key: nvidia.com/gpu}}]
      constant: {{pods: {pretraining}}}
    - {{name: web, gpus: 1, maxUnavailable: 10, inference: {{least: {least_web}, most: {most_web}}}}}
    - {{name: evaluation, gpus: 2, runsFor: 40m, varies: Widely, diurnal: {{perHour: {evaluation}}}}}
  faults:
    - {{fault: NodeDeath, at: 3h, every: 7h, count: 2}}
    - {{fault: StockOut, at: 5h, lasts: 2h, every: 25h, instanceType: g6.12xlarge}}
    - {{fault: ControllerCrash, at: 8h, every: 26h}}
    - {{fault: LateWatch, at: 6h, lasts: 1h, every: 27h, delay: 20s}}
"""


class Size(msgspec.Struct, frozen=True):
    """Of the fleet, its load, and how long it is watched."""

    nodes: int
    pods_a_day: int
    days: float


def play_of(size: Size, folder: Path) -> Play:
    """Written there, and read as the command reads it."""
    for name in ("before", "after"):
        (folder / name).mkdir()
        (folder / name / "fleet.yaml").write_text(_POLICIES.format(team=name, **_nodes(size)), encoding="utf-8")
    file = folder / "scenario.yaml"
    minutes = int(size.days * 1440)
    times = {"minutes": minutes, "edited": min(1440 + 120, minutes - 1)}
    file.write_text(_SCENARIO.format(**times, **_nodes(size), **_load(size)), encoding="utf-8")
    ready = prepared(SimulationRequest(file))
    if not ready.plays:
        raise ValueError("\n".join(str(each) for each in ready.checkup.resolved.problems))
    return ready.plays[0]


def _nodes(size: Size) -> dict[str, int]:
    a100 = size.nodes * 3 // 4
    l4 = size.nodes - a100
    return {"a100": a100, "l4": l4, "most_a100": a100 * 11 // 10, "most_l4": l4 * 5 // 4}


def _load(size: Size) -> dict[str, int]:
    """Three of four GPUs are asked for on average: two thirds of that by jobs."""
    nodes = _nodes(size)
    web, jobs = nodes["l4"] * 4, size.pods_a_day * 4 // 5
    return {
        "mix": jobs,
        "pretraining": nodes["a100"] // 4,
        "least_web": web // 4,
        "most_web": web * 3 // 4,
        "evaluation": max(1, (size.pods_a_day - jobs) * 10 // 6 // 24),
    }
