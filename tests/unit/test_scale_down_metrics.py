"""What is measured of nodes that go: each once, and drained ones apart from those that were empty."""

from typing import Any

from reconciler.model.planned.cycled import Cycled
from reconciler.model.planned.outcome import Outcome, Result
from reconciler.serve.metrics import Metrics
from tests.unit.drain_stage import World
from tests.unit.scaling_stage import after

GONE: dict[str, Any] = {
    "nodes": {"a": {"draining": 300}, "b": {"pods": ["web 5"]}, "c": {"pods": ["web 1"]}},
    "remembers": {"emptied": {"a": 60}},
}
MOVED: dict[str, Any] = {"nodes": {"a": {"pods": ["web 2"], "draining": 60}, "b": {"pods": ["web 5"]}}}


def told(case: dict[str, Any], result: Result, *seconds: int) -> str:
    metrics, world = Metrics(), World(case)
    made = world.planned()
    acted = [each for each in made.decisions if type(each.act).__name__ in {"Delete", "Evict"}]
    outcomes = tuple(Outcome(each.subject, type(each.act).__name__.lower(), result) for each in acted)
    for second in seconds or (0,):
        metrics.publish(Cycled(after(second), world.inputs, made, outcomes))
    return metrics.text().decode()


def test_a_drained_node_counts_once_however_often_its_deletion_is_asked_for() -> None:
    text = told(GONE, "done", 0, 5)
    assert 'reconciler_scaled_down_nodes_total{reason="underutilized"} 1.0' in text
    assert 'reconciler_scaled_down_gpu_nodes_total{pool="a100",reason="underutilized"} 1.0' in text
    assert "reconciler_drain_duration_seconds_sum 300.0" in text
    assert "reconciler_unneeded_nodes 1.0" in text


def test_what_was_refused_did_not_go() -> None:
    assert "reconciler_scaled_down_nodes_total{" not in told(GONE, "stale")


def test_evictions_count_by_what_came_of_them() -> None:
    assert 'reconciler_evictions_total{result="done"} 1.0' in told(MOVED, "done")
    assert 'reconciler_evictions_total{result="retry"} 1.0' in told(MOVED, "retry")
