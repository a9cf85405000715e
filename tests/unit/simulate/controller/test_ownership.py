"""A pool whose NodePool somebody else made is only observed, on an imagined cluster for hours."""

from pathlib import Path

import pytest

from reconciler.model import names
from tests.stages.scaling.drawn import Json, Outcome, played, pool, provisioner

DRAINS = {
    "apiVersion": "gpu.scheduling/v1",
    "kind": "DrainPolicy",
    "metadata": {"name": "drains"},
    "spec": {"poolNames": ["*"], "scaleDownUnneededTime": "5m"},
}


def hours(folder: Path, labels: Json, annotations: Json) -> Outcome:
    """12 nodes, of which 4 are empty and others little used; right after the first plan the NodePool changes hands."""
    edit = {"at": "0s", "kind": "NodePool", "name": "a100", "labels": labels, "annotations": annotations}
    scenario = {
        "duration": "2h",
        "cluster": {"nodes": [{"pool": "a100", "count": 12}]},
        "workloads": [{"name": "serve", "gpus": 1, "constant": {"pods": 8}}],
        "edits": [edit] if labels or annotations else [],
    }
    return played(folder, [pool("a100"), provisioner("a100", scaleDownDelay="10m"), DRAINS], scenario)


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [({names.MANAGED: "false"}, {}), ({}, {names.ENVIRONMENT: "stage"})],
    ids=["somebody else's", "another environment's"],
)
def test_nothing_is_done_to_the_nodes_of_a_node_pool_that_is_not_ours(
    labels: Json, annotations: Json, tmp_path: Path
) -> None:
    outcome = hours(tmp_path, labels, annotations)
    assert [each for each in outcome.told if each.at > outcome.play.start] == []
    assert outcome.evicted.total() == 0
    assert outcome.pools[0].nodes == 12


def test_the_same_nodes_go_where_the_node_pool_is_ours(tmp_path: Path) -> None:
    outcome = hours(tmp_path, {}, {})
    assert {each.did for each in outcome.told} >= {"mark", "harden", "delete"}
    assert outcome.pools[0].nodes < 8
