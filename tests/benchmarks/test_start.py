"""How long it takes to start, and what it then holds: the command line and the lab."""

import statistics
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks.calibration import Unit
from tests.benchmarks.measured import measured
from tests.lab import build
from tests.lab.lab import Lab
from tests.results.record import Recorder, Result

RUNS, AIM_UNITS = 20, 1.5


@pytest.mark.bench
def test_help_starts_quickly(recorder: Recorder, unit: Unit) -> None:
    runs = [measured([sys.executable, "-m", "reconciler", "--help"]) for _ in range(RUNS)]
    assert {run.code for run in runs} == {0}
    figures: dict[str, float | int | str] = {
        "median_ms": round(1000 * statistics.median(run.seconds for run in runs)),
        "slowest_ms": round(1000 * max(run.seconds for run in runs)),
        **unit.figures,
        "aim_units": AIM_UNITS,
        "aim_ms": unit.of_ms(AIM_UNITS),
        "peak_mib_at_most": max(run.peak_mib for run in runs),
    }
    recorder.write(Result("bench-help", "starts of reconciler --help", RUNS, 0, figures=figures))


@pytest.mark.bench
def test_the_lab_starts_within_15_seconds(recorder: Recorder) -> None:
    """Of its own, not the run's: starting is what is measured."""
    built = build.built()
    figures: dict[str, float | int | str] = {"aim_seconds": 15}
    started = time.perf_counter()
    with Lab(built) as lab:
        figures["control_plane_seconds"] = round(time.perf_counter() - started, 1)
        lab.start("scheduler", "kwok", "karpenter")
        figures["all_parts_seconds"] = round(time.perf_counter() - started, 1)
        for part, pid in lab.pids().items():
            figures[f"{part}_mib"] = resident_mib(pid)
        stopping = time.perf_counter()
    figures["stop_seconds"] = round(time.perf_counter() - stopping, 1)
    recorder.write(Result("bench-lab", "starts of the whole lab", 1, 0, figures=figures))


def resident_mib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) // 1024
