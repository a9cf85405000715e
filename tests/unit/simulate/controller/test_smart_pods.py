"""Demand behind our gate on an imagined cluster, from refused to running, and what may go wrong on the way."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.simulate.objects import WORKLOAD
from tests.lab import fleet as lab
from tests.stages.scaling.drawn import Json, play_of, pool, provisioner
from tests.stages.stories.waiting import Waited, faults_of, waited

FIRST, SECOND = "p4d.24xlarge", "p4d.spare"
SPARE = (SECOND, 8)


def several(*more: tuple[str, int], **spec: Any) -> Json:
    made = pool("a100", *more)
    return {**made, "spec": made["spec"] | spec}


def gated(pods: int = 1, gpus: int = 8, **fields: Any) -> Json:
    return {"name": "train", "gpus": gpus, "waitsForCapacity": True, "constant": {"pods": pods}, **fields}


def told(folder: Path, policies: list[Json] | Json, *workloads: Json, **scenario: Any) -> Waited:
    spec = {"duration": "30m", "workloads": list(workloads), **scenario}
    return waited(play_of(folder, policies if isinstance(policies, list) else [policies], spec))


def all_run(found: Waited, pods: int, nodes: int) -> None:
    assert faults_of(found) == []
    assert (len(found.bound), len(found.waiting)) == (pods, 0)
    assert found.simulated.sums.nodes_bought == nodes


# From refused to running


@pytest.mark.parametrize("policies", [[pool("a100")], [pool("a100"), provisioner("a100")]], ids=["unscaled", "scaled"])
def test_20_pods_behind_our_gate_get_exactly_20_nodes(policies: list[Json], tmp_path: Path) -> None:
    found = told(tmp_path, policies, gated(20))
    all_run(found, pods=20, nodes=20)
    assert len(found.asked) == 20
    assert found.reasons("delete") == {"SmartPodDone": 20}
    assert found.reasons("lift") == {"CapacityThere": 20}


def test_20_ordinary_pods_get_exactly_20_nodes_and_no_smart_pod_is_ever_made(tmp_path: Path) -> None:
    found = told(tmp_path, pool("a100"), {"name": "plain", "gpus": 8, "constant": {"pods": 20}})
    all_run(found, pods=20, nodes=20)
    assert found.asked == []


def test_pods_that_share_nodes_get_as_many_as_they_fill(tmp_path: Path) -> None:
    found = told(tmp_path, pool("a100"), gated(10, gpus=3))
    all_run(found, pods=10, nodes=5)


def test_those_behind_the_gate_and_those_in_the_open_get_what_they_need_together(tmp_path: Path) -> None:
    plain = {"name": "plain", "gpus": 8, "constant": {"pods": 5}}
    found = told(tmp_path, pool("a100"), gated(5), plain)
    all_run(found, pods=10, nodes=10)


def test_a_free_node_is_used_before_one_is_bought(tmp_path: Path) -> None:
    found = told(tmp_path, pool("a100"), gated(3), cluster={"nodes": [{"pool": "a100", "count": 2}]})
    all_run(found, pods=3, nodes=1)
    assert len(found.asked) == 1


def test_the_least_size_is_reached_by_smart_pods(tmp_path: Path) -> None:
    found = told(tmp_path, [pool("a100"), provisioner("a100", minSize=4)], duration="20m")
    all_run(found, pods=0, nodes=4)
    assert {each.why for each in found.asked} == {"minSize"}
    assert len(found.asked) == 4


def test_in_observe_mode_nothing_is_made_and_nobody_let_go(tmp_path: Path) -> None:
    found = told(tmp_path, several(mode="Observe"), gated(2))
    assert found.did == ()
    assert found.simulated.sums.nodes_bought == 0
    assert len(found.waiting) == 2


# Gates of others


def test_for_pods_behind_foreign_gates_nothing_is_bought_until_those_are_lifted(tmp_path: Path) -> None:
    foreign = "queue.example.com/turn"
    lifted = {"at": "20m", "kind": "Pod", "having": {WORKLOAD: "train"}, "count": 9, "lifts": foreign}
    held = told(tmp_path, pool("a100"), gated(2, gates=[foreign]))
    assert (held.asked, held.did, len(held.waiting)) == ([], (), 2)
    assert all(len(pod.spec.scheduling_gates) == 2 for pod in held.waiting)
    found = told(tmp_path, pool("a100"), gated(2, gates=[foreign]), edits=[lifted], duration="40m")
    all_run(found, pods=2, nodes=2)
    assert min(each.at for each in found.did) >= found.when(20)


# Out of stock


@pytest.mark.parametrize("fault", ["NotOffered", "StockOut"])
def test_what_can_not_be_had_falls_back_to_the_next_type(fault: str, tmp_path: Path) -> None:
    lacking = {"fault": fault, "at": "0s", "instanceType": FIRST}
    found = told(tmp_path, several(SPARE), gated(3), faults=[lacking])
    all_run(found, pods=3, nodes=3)
    assert set(found.sorts) == {f"{SECOND} on-demand"}
    assert [each.instance_type for each in found.asked] == [FIRST] * 3 + [SECOND] * 3


def test_and_after_the_types_to_the_next_capacity_type(tmp_path: Path) -> None:
    lacking = {"fault": "NotOffered", "at": "0s", "capacityType": "spot"}
    kinds = several(SPARE, capacityTypes=["spot", "on-demand"])
    found = told(tmp_path, kinds, gated(2), faults=[lacking])
    all_run(found, pods=2, nodes=2)
    assert set(found.sorts) == {f"{FIRST} on-demand"}


@pytest.mark.parametrize("fault", ["NotOffered", "StockOut"])
def test_where_nothing_is_on_offer_it_is_told_and_tried_again_when_that_is_over(fault: str, tmp_path: Path) -> None:
    lacking = {"fault": fault, "at": "0s", "lasts": "30m"}
    found = told(tmp_path, pool("a100"), gated(2), faults=[lacking], duration="60m")
    all_run(found, pods=2, nodes=2)
    assert {"SmartPodFailed", "CapacityRefused", "SmartPodCleared"} <= found.said
    assert found.reasons("note")["CapacityRefused"] >= 2


def test_a_pool_with_nothing_on_offer_recovers_when_it_is_changed(tmp_path: Path) -> None:
    lacking = {"fault": "NotOffered", "at": "0s", "instanceType": FIRST}
    later = [
        {"files": {"all.yaml": yaml.safe_dump(pool("a100"))}},
        {"at": "8m", "files": {"all.yaml": yaml.safe_dump(several(SPARE))}},
    ]
    scenario = {"duration": "30m", "workloads": [gated(2)], "faults": [lacking], "policies": later}
    found = waited(play_of(tmp_path, [], scenario))
    all_run(found, pods=2, nodes=2)
    assert set(found.sorts) == {f"{SECOND} on-demand"}
    assert "CapacityRefused" in found.said
    assert min(each.at for each in found.did if each.request and each.request.instance_type == SECOND) < found.when(9)


def test_beside_karpenter_that_finds_no_stock_a_smart_pod_asks_once_in_ten_minutes(tmp_path: Path) -> None:
    plain, lacking = (
        {"name": "plain", "gpus": 8, "constant": {"pods": 1}},
        {"fault": "StockOut", "at": "0s", "lasts": "55m"},
    )
    found = told(tmp_path, pool("a100"), plain, faults=[lacking], duration="80m")
    all_run(found, pods=1, nodes=1)
    assert 3 <= len(found.asked) <= 6


# Other hands


def test_a_machine_that_is_deleted_underneath_is_bought_again(tmp_path: Path) -> None:
    edits = [{"at": "30s", "kind": "NodeClaim", "count": 2, "deleted": True}]
    found = told(tmp_path, pool("a100"), gated(3), edits=edits)
    all_run(found, pods=3, nodes=5)
    assert len(found.observed.nodes) == 3


@pytest.mark.parametrize("at", ["3s", "40s", "100s", "150s"])
def test_smart_pods_that_somebody_deletes_are_made_again_where_they_are_needed(at: str, tmp_path: Path) -> None:
    edits = [{"at": at, "kind": "Pod", "having": {names.COMPONENT: "smart-scheduler"}, "count": 9, "deleted": True}]
    found = told(tmp_path, pool("a100"), gated(3), edits=edits)
    all_run(found, pods=3, nodes=3)


def test_a_node_that_dies_under_who_waited_is_replaced(tmp_path: Path) -> None:
    found = told(tmp_path, pool("a100"), gated(3), faults=[{"fault": "NodeDeath", "at": "8m"}], duration="40m")
    assert faults_of(found) == []
    assert (len(found.bound), len(found.waiting)) == (3, 0)


# Nobody there


@pytest.mark.parametrize("writes", range(1, 13))
def test_killed_between_any_two_writes_it_goes_on(writes: int, tmp_path: Path) -> None:
    crash = {"fault": "ControllerCrash", "at": "1s", "afterWrites": writes}
    found = told(tmp_path, pool("a100"), gated(1, begins="2s"), faults=[crash])
    all_run(found, pods=1, nodes=1)
    assert len(found.asked) <= 1


@pytest.mark.parametrize("writes", range(1, 9))
def test_nor_does_it_lose_count_of_what_could_not_be_had(writes: int, tmp_path: Path) -> None:
    faults = [
        {"fault": "NotOffered", "at": "0s", "instanceType": FIRST},
        {"fault": "ControllerCrash", "at": "3s", "afterWrites": writes},
    ]
    found = told(tmp_path, several(SPARE), gated(2, begins="2s"), faults=faults)
    all_run(found, pods=2, nodes=2)
    assert set(found.sorts) == {f"{SECOND} on-demand"}


@pytest.mark.parametrize("at", ["1s", "5s", "40s", "155s"])
def test_absent_for_ten_minutes_it_goes_on(at: str, tmp_path: Path) -> None:
    absent = {"fault": "ControllerAbsent", "at": at, "lasts": "10m"}
    found = told(tmp_path, pool("a100"), gated(2), faults=[absent], duration="50m")
    all_run(found, pods=2, nodes=2)


# Gangs, by claims of a cluster that was seen


def gang(folder: Path, most_nodes: int) -> Waited:
    """Two pods of one gang; scenarios make no claims, so that these are there from the beginning."""
    play = play_of(folder, [several(limits={"nodes": most_nodes})], {"duration": "20m"})
    names_of = ("one", "two")
    head = ("gpu.scheduling/v1", "GpuClaim")
    spec = {"gangRef": "llama", "devices": {"count": 8}}
    claims = tuple(Unstructured(*head, UnstructuredMetadata(each, "default"), {"spec": spec}) for each in names_of)
    pods = tuple(lab.Pod(each, gpus=8).gated(names.CAPACITY_GATE).manifest() for each in names_of)
    for each in pods:
        each["metadata"]["annotations"] = {names.CLAIM: each["metadata"]["name"]}
    observed = Observed(cluster_uid="seen", pods=msgspec.convert(pods, tuple[Pod, ...]), policies=claims)
    return waited(msgspec.structs.replace(play, observed=observed))


def test_a_gang_is_asked_for_and_let_go_together(tmp_path: Path) -> None:
    found = gang(tmp_path, most_nodes=2)
    all_run(found, pods=2, nodes=2)
    assert len({each.at for each in found.did if each.verb == "ask"}) == 1
    assert len({each.at for each in found.did if each.verb == "lift"}) == 1


def test_nothing_is_bought_for_a_gang_that_has_no_room(tmp_path: Path) -> None:
    found = gang(tmp_path, most_nodes=1)
    assert faults_of(found) == []
    assert (found.asked, len(found.waiting), found.simulated.sums.nodes_bought) == ([], 2, 0)
