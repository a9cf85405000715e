"""How soon demand that Karpenter can't see is asked for, and how soon a smart pod is gone once its node is ready."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model import names
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.results.record import Recorder, Result
from tests.stages.smart import Demand

PODS, AIM_MS, LOOK_SECONDS = 12, 1_000, 0.01


@pytest.mark.bench
def test_smart_pods_come_and_go_within_a_second(recorder: Recorder, cluster: Lab, tmp_path: Path) -> None:
    """One after the other; the lab is looked at all the time, which is in the figures."""
    demand = Demand(cluster, tmp_path)
    demand.write()
    asked, gone = [], []
    try:
        with demand.site.replica() as replica:
            replica.wait_until_leading()
            demand.admin.wait_for("nodepools", "a100", bool)
            for number in range(PODS):
                known = {each["metadata"]["name"] for each in demand.nodes()}
                (pod,) = demand.comes(1, prefix=f"pod-{number}")
                asked.append(until(demand.smart))
                until(lambda known=known: [each for each in demand.nodes() if usable(each, known)])  # type: ignore[misc]
                gone.append(until(lambda: not demand.smart()))
                demand.runs([pod])
    finally:
        demand.site.clean()
    late = sum(each > AIM_MS for each in (*asked, *gone))
    figures: dict[str, float | int | str] = {
        "asked_median_ms": statistics.median(asked),
        "asked_slowest_ms": max(asked),
        "gone_median_ms": statistics.median(gone),
        "gone_slowest_ms": max(gone),
        "aim_ms": AIM_MS,
    }
    what = "waits for a smart pod to be made, or to be gone once its node was ready, of more than the aim"
    recorder.write(Result("bench-smart-pods", what, 2 * PODS, late, figures=figures))


def until(is_so: Callable[[], object]) -> int:
    """How long it took, in milliseconds."""
    started = time.perf_counter()
    while not is_so():
        assert time.perf_counter() - started < 60
        time.sleep(LOOK_SECONDS)
    return round(1000 * (time.perf_counter() - started))


def usable(node: Manifest, known: set[str]) -> bool:
    """Ready, and no longer closed to all pods by Karpenter, which first has to note whose it is."""
    ready = [each["status"] for each in node.get("status", {}).get("conditions", ()) if each["type"] == "Ready"]
    closed = any(each["key"] == names.UNREGISTERED for each in node["spec"].get("taints", ()))
    return node["metadata"]["name"] not in known and ready == ["True"] and not closed
