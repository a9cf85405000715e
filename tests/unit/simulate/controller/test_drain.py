"""Drains on an imagined cluster: half-empty pools are packed, and nothing is broken on the way."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model import names
from reconciler.simulate.objects import RUN_SECONDS
from tests.stages.scaling.drawn import Json, Outcome, played, pool, provisioner


def drains(**spec: Any) -> Json:
    head = {"apiVersion": "gpu.scheduling/v1", "kind": "DrainPolicy", "metadata": {"name": "drains"}}
    return {**head, "spec": {"poolNames": ["a100"], "utilizationThresholdPercent": 60, **spec}}


def half_empty(folder: Path, *policies: Json, faults: tuple[Json, ...] = (), **web: Any) -> Outcome:
    """A pod of each of two services on each of 16 nodes; one of them is given up after ten minutes."""
    scenario = {
        "duration": "4h",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": "a100", "count": 16}]},
        "workloads": [
            {"name": "old", "gpus": 5, "constant": {"pods": 16}, "ends": "10m"},
            {"name": "web", "gpus": 3, "constant": {"pods": 16}, "maxUnavailable": 4, **web},
        ],
        "faults": list(faults),
    }
    return played(folder, [pool("a100"), *policies], scenario)


def sized(**spec: Any) -> Json:
    return provisioner("a100", minGPUUtilizationPercent=80, **spec)


def test_a_half_empty_pool_is_packed_and_no_rule_is_broken(tmp_path: Path) -> None:
    outcome = half_empty(tmp_path, sized(), drains())
    assert outcome.simulated.broken == ()
    (at_the_end,) = outcome.pools
    assert at_the_end.nodes <= 10
    assert outcome.simulated.sums.pending_pods == 0
    assert outcome.simulated.sums.nodes_bought == 0
    codes = Counter(each.reason for each in outcome.told)
    assert codes["Drained"] == codes["DrainedNodeDeleted"] > 0
    assert not codes["GivenBack"]


def test_where_no_node_provisioner_scales_a_pool_the_drain_policy_removes_its_empty_nodes(tmp_path: Path) -> None:
    scenario = {
        "duration": "90m",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": "a100", "count": 10}]},
        "workloads": [{"name": "train", "gpus": 8, "constant": {"pods": 10}, "ends": "10m"}],
    }
    outcome = played(tmp_path, [pool("a100"), drains(maxScaleDownParallelism=4)], scenario)
    assert outcome.simulated.broken == ()
    (at_the_end,) = outcome.pools
    assert at_the_end.nodes == 0
    codes = Counter(each.reason for each in outcome.told)
    assert codes["EmptyNodeRemoved"] == codes["DrainedNodeDeleted"] > 0


def test_a_node_waits_for_a_pod_that_runs_to_completion_and_goes_then(tmp_path: Path) -> None:
    """The two pods have room on no node together, so that one of two nodes has nothing but the one that completes."""
    container = {"name": "main", "resources": {"requests": {names.NVIDIA_GPU: "4"}, "limits": {names.NVIDIA_GPU: "4"}}}
    annotations = {names.SAFE_TO_EVICT: "on-completion", RUN_SECONDS: "5400"}
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    template = {
        "metadata": {"labels": {"app": "train"}, "annotations": annotations},
        "spec": {"containers": [container], "restartPolicy": "Never", "tolerations": tolerations},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"parallelism": 1, "completions": 1, "template": template},
    }
    scenario = {
        "duration": "150m",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": "a100", "count": 2}], "objects": [yaml.safe_dump(job)]},
        "workloads": [{"name": "web", "gpus": 5, "constant": {"pods": 1}}],
    }
    outcome = played(tmp_path, [pool("a100"), drains()], scenario)
    assert outcome.simulated.broken == ()
    codes = Counter(each.reason for each in outcome.told)
    assert codes["CompletingDrainCandidate"]
    assert outcome.evicted.total() == 0
    (at_the_end,) = outcome.pools
    assert at_the_end.nodes == 1
    assert outcome.simulated.sums.nodes_bought == 0


@pytest.mark.parametrize("sizes", [[sized()], []], ids=["with a NodeProvisioner", "without"])
def test_a_node_whose_kubelet_is_gone_is_drained_once_and_goes(sizes: list[Json], tmp_path: Path) -> None:
    """Its pods stay Terminating: nobody waits for them for ever, and their successors run elsewhere."""
    scenario = {
        "duration": "3h",
        "warmUp": "5m",
        "cluster": {"nodes": [{"pool": "a100", "count": 4}]},
        "workloads": [{"name": "web", "gpus": 4, "constant": {"pods": 7}, "maxUnavailable": 1}],
        "faults": [{"fault": "KubeletDown", "at": "10m"}],
    }
    outcome = played(tmp_path, [pool("a100"), *sizes, drains()], scenario)
    assert outcome.simulated.broken == ()
    codes = Counter(each.reason for each in outcome.told)
    assert codes["Drained"] == codes["DrainedNodeDeleted"] == 1
    assert not codes["GivenBack"]
    assert outcome.simulated.sums.pending_pods == 0
    (at_the_end,) = outcome.pools
    assert at_the_end.nodes == 4  # one was bought for what ran on the lost one


def test_without_a_drain_policy_nothing_that_runs_is_moved(tmp_path: Path) -> None:
    outcome = half_empty(tmp_path, sized())
    assert outcome.simulated.broken == ()
    assert not {each.reason for each in outcome.told} & {"Drained", "DrainedNodeDeleted", "DrainCandidate"}


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "ControllerCrash", "at": "20m", "every": "7m"},
        {"fault": "LateWatch", "at": "10m", "lasts": "2h", "delay": "20s"},
        {"fault": "LateWatch", "at": "23m", "lasts": "40m", "delay": "2m"},
        {"fault": "SlowApi", "at": "10m", "lasts": "2h", "delay": "10s"},
        {"fault": "NodeDeath", "at": "25m", "count": 2},
        {"fault": "ControllerAbsent", "at": "24m", "lasts": "30m"},
    ],
    ids=lambda fault: f"{fault['fault']} {fault.get('delay', '')}".strip(),
)
def test_whatever_goes_wrong_meanwhile_no_rule_is_broken(fault: Json, tmp_path: Path) -> None:
    outcome = half_empty(tmp_path, sized(), drains(), faults=(fault,), maxUnavailable=1)
    assert outcome.simulated.broken == ()
    assert outcome.simulated.sums.pending_pods == 0
    (at_the_end,) = outcome.pools
    assert at_the_end.nodes < 16


@pytest.mark.parametrize("saves", [{"savesWithin": "40s"}, {}], ids=["saves", "never says"])
def test_pods_that_save_their_work_have_the_time_for_it_though_the_controller_comes_and_goes(
    saves: Json, tmp_path: Path
) -> None:
    crash = {"fault": "ControllerCrash", "at": "20m", "every": "3m"}
    outcome = half_empty(tmp_path, sized(), drains(), faults=(crash,), checkpoint="2m", maxUnavailable=1, **saves)
    assert outcome.simulated.broken == ()
    assert outcome.evicted["PodEvictedSaved" if saves else "PodEvictedUnsaved"] >= 6
    assert not outcome.evicted["PodEvicted"]
    (at_the_end,) = outcome.pools
    assert at_the_end.nodes <= 10
