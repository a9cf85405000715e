"""What an edit of an object in the cluster is told as: the fields that differ, and no more."""

from typing import Any

import pytest

from reconciler.loop import decide
from reconciler.report.edited import edited
from tests.unit.manifests_stage import inputs_of


@pytest.mark.parametrize(
    ("live", "wish", "told"),
    [
        ({"cpu": "8", "memory": "1Ti"}, {"cpu": "9", "memory": "1Ti"}, ["spec.limits.cpu: 8 -> 9"]),
        (
            {"cpu": "8", "nvidia.com/gpu": "8"},
            {"cpu": "8", "nvidia.com/gpu": "16"},
            ["spec.limits[nvidia.com/gpu]: 8 -> 16"],
        ),
        ({"cpu": "8"}, {"cpu": "8", "nodes": "3"}, ["spec.limits.nodes: + 3"]),
        ({"cpu": "8", "nodes": "3"}, {"cpu": "8"}, ["spec.limits.nodes: - 3"]),
    ],
)
def test_of_a_map_only_the_keys_that_differ_are_told(live: Any, wish: Any, told: list[str]) -> None:
    inputs = inputs_of({"unmanaged": True, "live": {"spec": {"limits": live}}, "wish": {"spec": {"limits": wish}}})
    (decision,) = decide(inputs).plan.decisions
    assert [each.words for each in edited(decision, inputs.observed)] == told
