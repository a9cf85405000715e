"""5,000 nodes and 100,000 pods, from the API server's JSON to an Observed, beside the `kubernetes` package's models."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.big_fleet import KINDS, BigFleet
from tests.results.record import Recorder, Result


@pytest.mark.bench
def test_a_big_fleet_is_read_30_times_faster_than_by_the_models(tmp_path: Path, recorder: Recorder) -> None:
    fleet = BigFleet()
    for kind in KINDS:
        for number, page in enumerate(fleet.pages(kind)):
            (tmp_path / f"{kind}-{number:04}.json").write_bytes(page)
    figures = told("speed", tmp_path) | told("models", tmp_path) | told("size", tmp_path)
    ratio = round(float(figures["models_us_an_object"]) / float(figures["us_an_object"]), 1)
    figures |= {"times_faster": ratio, "aim_times_faster": 30, "aim_resident_growth_mib": 350}
    slow, large = ratio < 30, float(figures["resident_growth_mib"]) > 350
    what = "nodes and pods decoded, in pages of 500"
    recorder.write(Result("bench-observing", what, fleet.nodes + fleet.pods, slow + large, fleet.seed, figures))
    assert not slow
    assert not large


def told(what: str, folder: Path) -> dict[str, float | int | str]:
    """In a process of its own: what this one holds by now must not count."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.observing", str(folder), what],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, float | int | str] = json.loads(done.stdout)
    return found
