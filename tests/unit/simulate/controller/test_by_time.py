"""Warm nodes, sizes by the time of day, and windows, over days of an imagined cluster."""

from pathlib import Path

import pytest

from reconciler.model.instant import Instant, instant
from tests.stages.scaling.drawn import Json, Outcome, played, pool, provisioner
from tests.stages.scaling.judging import faults_of

# Clocks in Berlin are set back on 2026-10-25 at 03:00, so that 08:00 there is 06:00 in UTC before, and 07:00 after.
SATURDAY = "2026-10-24T00:00:00Z"
OFFICE = {"schedule": "0 8 * * *", "timeZone": "Europe/Berlin", "duration": "10h"}


def sizes_at(outcome: Outcome, *times: str) -> list[int]:
    """How many nodes there were at each time."""
    steps = outcome.simulated.steps
    return [[step.pools[0].nodes for step in steps if step.at <= instant(at)][-1] for at in times]


def scenario(**spec: object) -> Json:
    return {"warmUp": "5m", "cluster": {"nodes": [{"pool": "a100", "count": 2}]}, "workloads": [], **spec}


def test_a_schedule_follows_the_clocks_of_its_time_zone_over_the_day_that_they_are_set_back(tmp_path: Path) -> None:
    sized = provisioner("a100", minSize=1, scaleDownDelay="5m", schedules=[{**OFFICE, "minSize": 4}])
    outcome = played(tmp_path, [pool("a100"), sized], scenario(start=SATURDAY, duration="48h"))
    day, next_day = "2026-10-24", "2026-10-25"
    # On Saturday from 06:00 to 16:00 in UTC, on Sunday from 07:00 to 17:00; machines take minutes to come or go.
    times = [f"{day}T05:59:00Z", f"{day}T06:15:00Z", f"{day}T15:59:00Z", f"{day}T16:15:00Z"]
    times += [f"{next_day}T06:59:00Z", f"{next_day}T07:15:00Z", f"{next_day}T16:59:00Z", f"{next_day}T17:15:00Z"]
    assert sizes_at(outcome, *times) == [1, 4, 4, 1, 1, 4, 4, 1]


def jobs(pods: int, **spec: object) -> Json:
    return {"name": "train", "gpus": 8, "runsFor": "1h", "bursts": {"jobs": pods, "every": "12h"}, **spec}


def busy_and_all(outcome: Outcome, *minutes: int) -> list[tuple[int, int]]:
    """Busy nodes, and all nodes, so many minutes after the start."""
    steps, start = outcome.simulated.steps, outcome.play.start
    pools = [[step.pools[0] for step in steps if step.at <= Instant(start + 60_000 * each)][-1] for each in minutes]
    return [(each.busy_nodes, each.nodes) for each in pools]


@pytest.mark.parametrize("waits", [True, False], ids=["behind our gate", "seen by Karpenter"])
def test_a_pod_that_comes_to_a_warm_node_runs_at_once_and_another_is_bought(waits: bool, tmp_path: Path) -> None:
    train = jobs(1, begins="30m", waitsForCapacity=waits)
    sized = provisioner("a100", warmNodes=2, scaleDownDelay="5m")
    outcome = played(tmp_path, [pool("a100"), sized], scenario(duration="3h", workloads=[train]))
    assert faults_of(outcome) == []
    assert outcome.simulated.sums.late_wait_seconds <= 10
    assert outcome.simulated.sums.nodes_bought == 1
    # Two warm nodes; a third while one of them is busy, until it is empty again and the surplus one has left.
    assert busy_and_all(outcome, 29, 60, 180) == [(0, 2), (1, 3), (0, 2)]


@pytest.mark.parametrize("waits", [True, False], ids=["behind our gate", "seen by Karpenter"])
def test_pods_that_come_while_warm_nodes_are_bought_get_theirs_and_the_buffer_is_filled(
    waits: bool, tmp_path: Path
) -> None:
    train = jobs(2, begins="1m", runsFor="6h", waitsForCapacity=waits)
    sized = provisioner("a100", warmNodes=2, maxSize=10)
    outcome = played(
        tmp_path, [pool("a100"), sized], scenario(cluster={}, duration="1h", workloads=[train], warmUp="0s")
    )
    assert faults_of(outcome) == []
    assert outcome.simulated.sums.pending_pods == 0
    assert busy_and_all(outcome, 60) == [(2, 4)]
    assert outcome.simulated.sums.nodes_bought == 4


def test_warm_nodes_never_exceed_the_largest_size(tmp_path: Path) -> None:
    train = jobs(3, runsFor="6h", waitsForCapacity=True)
    sized = provisioner("a100", warmNodes=3, maxSize=4)
    outcome = played(tmp_path, [pool("a100"), sized], scenario(duration="1h", workloads=[train]))
    assert faults_of(outcome) == []
    assert {size.size + size.arriving + size.missing <= 4 for plan in outcome.sizes for size in plan} == {True}
    assert busy_and_all(outcome, 60) == [(3, 4)]


def test_drains_and_scaling_leave_the_warm_nodes_and_buy_nothing_in_vain(tmp_path: Path) -> None:
    train = {"name": "train", "gpus": 2, "inference": {"least": 4, "most": 40, "busiestHour": 14, "every": "10m"}}
    drains = {"apiVersion": "gpu.scheduling/v1", "kind": "DrainPolicy", "metadata": {"name": "d"}}
    policy = {**drains, "spec": {"poolNames": ["a100"], "scaleDownUnneededTime": "5m"}}
    sized = provisioner("a100", warmNodes=2, scaleDownDelay="5m")
    outcome = played(tmp_path, [pool("a100"), sized, policy], scenario(duration="12h", workloads=[train]))
    assert outcome.simulated.broken == ()
    # Forty pods of two GPUs fill ten nodes, and two are kept warm: one way up, one way down, and little beside.
    assert outcome.simulated.sums.nodes_bought <= 14
    pools = [step.pools[0] for step in outcome.simulated.steps]
    assert sum(each.nodes == each.busy_nodes for each in pools) <= len(pools) // 10


def test_outside_its_windows_a_pool_loses_no_empty_node(tmp_path: Path) -> None:
    night = [{"schedule": "0 20 * * *", "timeZone": "Europe/Berlin", "duration": "10h"}]
    sized = provisioner("a100", scaleDownDelay="30m", windows=night)
    outcome = played(tmp_path, [pool("a100"), sized], scenario(start="2026-10-24T05:00:00Z", duration="14h"))
    assert faults_of(outcome) == []
    opens = instant("2026-10-24T18:00:00Z")
    assert [each.at - opens < 60_000 for each in outcome.told if each.did == "mark" and each.at >= opens] == [True] * 2
    assert sizes_at(outcome, "2026-10-24T18:25:00Z", "2026-10-24T18:35:00Z") == [2, 0]


def test_drains_of_a_pool_with_warm_nodes_rest_when_the_moved_pods_take_these(tmp_path: Path) -> None:
    """The scheduler prefers free nodes: each warm node that a moved pod took is bought again, and drained again."""
    chat = {"name": "chat", "gpus": 2, "resources": {"cpu": 16}, "constant": {"pods": 12}}
    drain = {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "DrainPolicy",
        "metadata": {"name": "drain"},
        "spec": {"poolNames": ["a100"], "utilizationThresholdPercent": 50},
    }
    sized = provisioner("a100", warmNodes=2, scaleDownDelay="5m", minGPUUtilizationPercent=60)
    cluster = {"nodes": [{"pool": "a100", "count": 8}]}
    outcome = played(tmp_path, [pool("a100"), sized, drain], scenario(duration="6h", cluster=cluster, workloads=[chat]))
    assert faults_of(outcome) == []
    sums = outcome.simulated.sums
    assert sums.evictions <= 24, sums
    assert sums.nodes_bought <= 12, sums
