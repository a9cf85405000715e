"""`validate` of 1,000 documents in 200 files, on one core, from the start of the process."""

import os
import statistics
import sys
from pathlib import Path

import pytest

from tests.benchmarks.calibration import Unit
from tests.benchmarks.measured import measured
from tests.results.record import Recorder, Result

RUNS, FILES, AIM_UNITS = 5, 200, 20

# Five documents a file: 1,000 in all.
FILE = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {{name: pool-{n}}}
spec:
  devices: {{model: model-{n}, count: 8, memory: 40Gi}}
  instanceTypes:
    - name: type-{n}.24xlarge
      capacity: {{cpu: 96, memory: 1152Gi, pods: 250}}
      pricePerHour: {{reserved: "14.75", on-demand: "21.96"}}
  capacityTypes: [reserved, on-demand]
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}}
  taints: [{{key: example.com/pool-{n}, value: "true", effect: NoSchedule}}]
  limits: {{nodes: 128}}
---
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {{name: pool-{n}}}
spec:
  poolName: pool-{n}
  minSize: 8
  maxSize: 16
  minGPUUtilizationPercent: 70
  scaleDownDelay: 30m
---
apiVersion: gpu.scheduling/v1
kind: DrainPolicy
metadata: {{name: pool-{n}}}
spec:
  poolNames: [pool-{n}]
  utilizationThresholdPercent: 50
  windows: [{{schedule: "0 20 * * *", timeZone: Europe/Berlin, duration: 10h}}]
---
apiVersion: gpu.scheduling/v1
kind: PressurePolicy
metadata: {{name: pool-{n}}}
spec:
  poolNames: [pool-{n}]
  resources: {{cpu: {{system: 2, watermark: 85%}}, memory: {{system: 8Gi, watermark: 90%}}}}
  computeUnit: {{cpu: 1, memory: 4Gi}}
---
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {{name: pool-{n}}}
spec:
  poolNames: [pool-{n}]
  perPlan: {{maxRemovedNodes: 4, maxDisruptedGPUs: 8}}
"""


@pytest.mark.bench
@pytest.mark.parametrize("files", [FILES // 2, FILES], ids=["half", "whole"])
def test_a_thousand_documents(tmp_path: Path, recorder: Recorder, unit: Unit, files: int) -> None:
    for number in range(files):
        folder = tmp_path / "policies" / f"team-{number % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"pool-{number}.yaml").write_text(FILE.format(n=number))
    core = min(os.sched_getaffinity(0))
    command = ["taskset", "-c", str(core), sys.executable, "-m", "reconciler", "validate", "policies"]
    runs = [measured(command, cwd=tmp_path) for _ in range(RUNS)]
    assert {(run.code, run.output) for run in runs} == {(0, "")}, runs[0].output[:2000]
    figures: dict[str, float | int | str] = {
        "documents": files * 5,
        "files": files,
        "median_seconds": round(statistics.median(run.seconds for run in runs), 2),
        **unit.figures,
        "aim_units": AIM_UNITS,
        "aim_seconds": unit.of_seconds(AIM_UNITS),
        "peak_mib_at_most": max(run.peak_mib for run in runs),
    }
    name = "bench-validate" if files == FILES else "bench-validate-half"
    recorder.write(Result(name, "runs of validate on one core, from process start", RUNS, 0, figures=figures))
