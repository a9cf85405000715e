"""5,000 nodes and 100,000 pods, from the API server's JSON to an Observed, beside the `kubernetes` package's models."""

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.alone import alone
from tests.benchmarks.big_fleet import KINDS, BigFleet
from tests.results.record import Recorder, Result


@pytest.mark.bench
def test_a_big_fleet_is_read_30_times_faster_than_by_the_models(tmp_path: Path, recorder: Recorder) -> None:
    fleet = BigFleet()
    for kind in KINDS:
        for number, page in enumerate(fleet.pages(kind)):
            (tmp_path / f"{kind}-{number:04}.json").write_bytes(page)
    figures: dict[str, Any] = {}
    for what in ("speed", "models", "size"):
        figures |= alone("tests.benchmarks.decoding.measuring", tmp_path, what)
    ratio = round(float(figures["models_us_an_object"]) / float(figures["us_an_object"]), 1)
    figures |= {"times_faster": ratio, "aim_times_faster": 30, "aim_resident_growth_mib": 350}
    slow, large = ratio < 30, float(figures["resident_growth_mib"]) > 350
    told = "nodes and pods decoded, in pages of 500"
    recorder.write(Result("bench-observing", told, fleet.nodes + fleet.pods, slow + large, fleet.seed, figures))
    assert not slow
    assert not large
