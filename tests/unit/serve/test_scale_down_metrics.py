"""What is measured of nodes that go: each once, and drained ones apart from those that were empty."""

from typing import Any

from reconciler.model.plan.decision import Delete, Outcome, Result
from reconciler.model.plan.inputs import CycleResult
from reconciler.serve.metrics import Metrics
from tests.unit.plan.drain.stage import World
from tests.unit.plan.scaling.stage import World as EmptyWorld
from tests.unit.plan.scaling.stage import after

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
        metrics.publish(CycleResult(after(second), world.inputs, made, outcomes))
    return metrics.text().decode()


def test_a_drained_node_counts_once_however_often_its_deletion_is_asked_for() -> None:
    text = told(GONE, "done", 0, 5)
    assert 'reconciler_scaled_down_nodes_total{reason="underutilized"} 1.0' in text
    assert 'reconciler_scaled_down_gpu_nodes_total{pool="a100",reason="underutilized"} 1.0' in text
    assert 'reconciler_function_duration_seconds_sum{function="scale_down_non_empty"} 300.0' in text
    assert 'reconciler_function_duration_seconds_count{function="scale_down_empty"} 0.0' in text
    assert "reconciler_unneeded_nodes 1.0" in text


def test_what_was_refused_did_not_go() -> None:
    assert "reconciler_scaled_down_nodes_total{" not in told(GONE, "stale")


def test_evictions_count_by_what_came_of_them() -> None:
    assert 'reconciler_evictions_total{result="done"} 1.0' in told(MOVED, "done")
    assert 'reconciler_evictions_total{result="retry"} 1.0' in told(MOVED, "retry")


def test_a_node_that_was_empty_anyway_takes_the_time_since_pods_were_kept_from_it() -> None:
    metrics, world = Metrics(), EmptyWorld({"nodes": 3, "busy": 0, "marked": {1: "hard 0"}})
    made = world.planned()
    outcomes = tuple(Outcome(each.subject, "delete", "done") for each in made.decisions if isinstance(each.act, Delete))
    metrics.publish(CycleResult(after(2), world.inputs, made, outcomes))
    text = metrics.text().decode()
    assert 'reconciler_scaled_down_nodes_total{reason="empty"} 1.0' in text
    assert 'reconciler_function_duration_seconds_sum{function="scale_down_empty"} 32.0' in text
    assert 'reconciler_function_duration_seconds_count{function="scale_down_non_empty"} 0.0' in text


def test_the_parts_of_a_cycle_and_the_whole_of_it_are_measured() -> None:
    metrics = Metrics()
    metrics.publish(CycleResult(after(0), spent_ms=(("observe", 20), ("plan", 700))))
    text = metrics.text().decode()
    for function, seconds in (("observe", "0.02"), ("plan", "0.7"), ("main", "0.72")):
        assert f'reconciler_function_duration_seconds_sum{{function="{function}"}} {seconds}' in text
