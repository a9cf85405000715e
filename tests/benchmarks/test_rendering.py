"""How long 300 pools take from their values to manifests that Karpenter's schema has been asked about."""

import statistics
import time

import pytest

from reconciler.model.bundle import RenderRequest
from reconciler.policy.manifests.check import check, manifests_of
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.policy.manifests.pool_values import values_of
from reconciler.sources.input_file import default_templates, karpenter_schema
from reconciler.sources.renderer import render
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result
from tests.unit.policy.manifests.test_node_pool_template import FULL

POOLS = 300
RUNS = 10
RENDER_UNITS, CHECK_UNITS = 7, 5


@pytest.mark.bench
def test_300_pools_are_rendered_and_checked(recorder: Recorder, unit: Unit) -> None:
    asked = [RenderRequest("node_pool.yaml.j2", values_of(f"p{n}", FULL, covered=True)) for n in range(POOLS)]
    seconds: dict[str, list[float]] = {"render": [], "compile": [], "read_and_check": [], "check": []}
    wrong = 0
    for _ in range(RUNS):
        marks = [time.perf_counter()]
        done = render(default_templates(), asked)
        marks.append(time.perf_counter())
        schema = Structural(karpenter_schema() or {})
        marks.append(time.perf_counter())
        read = [manifests_of(each, schema) for each in done]
        marks.append(time.perf_counter())
        told = [check(each, documents, schema) for each, (documents, _) in zip(done, read, strict=True)]
        marks.append(time.perf_counter())
        for name, began, ended in zip(seconds, marks, marks[1:], strict=False):
            seconds[name].append(ended - began)
        wrong += sum(each.problem is not None for each in done) + sum(map(len, told))
    figures: dict[str, float | int | str] = {
        f"{name}_median_ms": round(1000 * statistics.median(each)) for name, each in seconds.items()
    }
    figures |= unit.figures | {"render_aim_units": RENDER_UNITS, "check_aim_units": CHECK_UNITS}
    figures |= {"render_aim_ms": unit.of_ms(RENDER_UNITS), "check_aim_ms": unit.of_ms(CHECK_UNITS)}
    recorder.write(Result("bench-rendering", f"{POOLS} pools rendered and checked", RUNS, wrong, figures=figures))
