"""Scaling on an imagined cluster, for hours: what holds whatever the pool, the load and what goes wrong."""

from itertools import pairwise
from pathlib import Path

import pytest

from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.plan.scaling import marks, size
from reconciler.plan.scaling.pool_view import PoolView
from tests.stages.scaling.drawn import Json, Outcome, drawn, played, pool, provisioner
from tests.stages.scaling.judging import faults_of

SEEDS = range(6)
HOUR = 3_600


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_comes_scaling_keeps_its_promises(seed: int, tmp_path: Path) -> None:
    assert faults_of(drawn(tmp_path, seed)) == []


def absence(folder: Path, late: Json) -> Outcome:
    """8 of 12 nodes are in use; 2 of the others are marked, and 4 jobs come while there is no controller for 8 h."""
    scenario = {
        "duration": "9h30m",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": "a100", "count": 12}]},
        "workloads": [
            {"name": "train", "gpus": 8, "constant": {"pods": 8}},
            {"name": "late", "gpus": 8, "begins": "4h", **late, "constant": {"pods": 4}},
        ],
        "faults": [{"fault": "ControllerAbsent", "at": "5m", "lasts": "8h"}],
    }
    return played(folder, [pool("a100"), provisioner("a100", scaleDownDelay="10m")], scenario)


def test_what_is_marked_takes_pods_while_nobody_is_there_and_none_is_deleted_on_waking_unseen(tmp_path: Path) -> None:
    outcome = absence(tmp_path, {"ends": "7h"})
    assert outcome.simulated.broken == ()
    assert outcome.simulated.sums.nodes_bought == 0
    assert max(step.longest_wait_seconds for step in outcome.simulated.steps) == 0
    assert {step.pools[0].busy_nodes for step in outcome.simulated.steps} == {8, 12}
    woken = outcome.when(8 * HOUR + 300)
    before, after = (
        [each for each in outcome.told if each.at < woken],
        [each for each in outcome.told if each.at >= woken],
    )
    assert [each.did for each in before] == ["mark", "mark"]
    assert {each.reason for each in after if each.did == "harden"} == {"DeletionNearLate"}
    hardened = {each.node: each.at for each in after if each.did == "harden"}
    deleted = {each.node: each.at for each in after if each.did == "delete"}
    assert set(deleted) == {each.node for each in before}
    assert all(at - hardened[node] >= 60_000 for node, at in deleted.items())


def test_nothing_is_deleted_on_waking_that_came_into_use_meanwhile(tmp_path: Path) -> None:
    outcome = absence(tmp_path, {})
    assert outcome.simulated.broken == ()
    assert outcome.simulated.sums.nodes_bought == 0
    assert [(each.did, each.reason) for each in outcome.told] == [
        *[("mark", "SurplusEmptyNode")] * 2,
        *[("keep", "MarkedNodeInUse")] * 2,
    ]


@pytest.mark.parametrize("percent", [50, 80, 100])
def test_under_a_constant_load_the_size_moves_one_way_and_stays(percent: int, tmp_path: Path) -> None:
    scenario = {
        "duration": "2h",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": "a100", "count": 20}]},
        "workloads": [{"name": "train", "gpus": 4, "constant": {"pods": 17}}],
    }
    sized = provisioner("a100", minGPUUtilizationPercent=percent, scaleDownDelay="5m")
    outcome = played(tmp_path, [pool("a100"), sized], scenario)
    assert faults_of(outcome) == []
    sizes = [step.pools[0].nodes for step in outcome.simulated.steps]
    assert all(after <= before for before, after in pairwise(sizes))
    assert sizes[-1] == max(9, 100 * 17 * 4 // (percent * 8))


def test_a_pod_that_needs_another_zone_runs_in_the_end_though_the_pool_has_its_largest_size(tmp_path: Path) -> None:
    elsewhere, zones = {"topology.kubernetes.io/zone": "zone-b"}, ((3, "zone-a"), (1, "zone-b"))
    scenario = {
        "duration": "1h",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": "a100", "count": many, "zone": zone} for many, zone in zones]},
        "workloads": [{"name": "train", "gpus": 8, "constant": {"pods": 2}, "nodeSelector": elsewhere}],
    }
    sized = provisioner("a100", maxSize=4, scaleDownDelay="10m")
    outcome = played(tmp_path, [pool("a100"), sized], scenario)
    assert faults_of(outcome) == []
    assert outcome.simulated.sums.pending_pods == 0
    assert outcome.simulated.sums.nodes_bought == 1


def one_too_many(wish: NodeProvisioner, gpus_used: int, gpus_per_node: int) -> int:
    return 1 + 100 * gpus_used // (wish.min_gpu_utilization_percent * gpus_per_node)


PLANTED = {
    "a formula that keeps one more": (size, "largest_full_size", one_too_many, "should be"),
    "a taint that is made hard too late": (marks, "HARD_AHEAD_MS", 1_000, "after NoSchedule"),
    "a node that is marked for half a minute": (marks, "LEAST_AHEAD_MS", 30_000, "after the deletion taint"),
    "busy nodes that count as empty": (PoolView, "empty", lambda ground: ground.nodes, "is tainted for deletion with"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_wrong_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where, what, instead, told = PLANTED[name]
    monkeypatch.setattr(where, what, instead)
    scenario = {
        "duration": "5m",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": "a100", "count": 12}]},
        "workloads": [{"name": "train", "gpus": 8, "constant": {"pods": 8}}],
    }
    outcome = played(tmp_path, [pool("a100"), provisioner("a100", scaleDownDelay="0s")], scenario)
    assert any(told in fault for fault in faults_of(outcome)), faults_of(outcome)
