"""Pools that keep free nodes come to rest under a constant load, and nodes that are little used are packed."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from reconciler.model.instant import Instant
from tests.stages.scaling.drawn import Json, Outcome, played, pool, provisioner

DRAINS = {"apiVersion": "gpu.scheduling/v1", "kind": "DrainPolicy", "metadata": {"name": "d"}}
HOUR = 3_600_000
Free = tuple[int, int]  # warmNodes, minUnutilizedGPUNodes


def outcome_of(path: Path, nodes: int, free: Free, workloads: list[Json], **drains: object) -> Outcome:
    warm, unutilized = free
    sized = provisioner("a100", maxSize=60, scaleDownDelay="5m", warmNodes=warm, minUnutilizedGPUNodes=unutilized)
    policy = {**DRAINS, "spec": {"poolNames": ["a100"], "scaleDownUnneededTime": "5m", **drains}}
    cluster = {"nodes": [{"pool": "a100", "count": nodes}]}
    scenario: Json = {"duration": "24h", "cluster": cluster, "workloads": workloads}
    return played(path, [pool("a100"), sized, policy], scenario)


def small(gpus: int, pods: int, **spec: object) -> Json:
    return {"name": f"small-{gpus}", "gpus": gpus, "resources": {"cpu": "1"}, "constant": {"pods": pods}, **spec}


def after(outcome: Outcome, hours: int) -> dict[str, int]:
    """What was done from that hour on."""
    late = [each for each in outcome.simulated.steps if each.at > Instant(outcome.play.start + hours * HOUR)]
    return {"evicted": sum(each.evicted for each in late), "bought": sum(each.bought for each in late)}


def busy_at(outcome: Outcome, hours: int) -> int:
    until = Instant(outcome.play.start + hours * HOUR)
    return [each.pools[0].busy_nodes for each in outcome.simulated.steps if each.at <= until][-1]


def grid() -> Iterator[tuple[int, Free, int, int]]:
    """Nodes, what is kept free, GPUs of a pod, and pods."""
    yield 3, (2, 0), 1, 2
    yield 14, (4, 0), 1, 10
    yield 5, (2, 3), 2, 4
    chance = Random(12)
    for _ in range(12):
        nodes, free = chance.randint(3, 20), (chance.randint(1, 4), chance.randint(0, 3))
        yield nodes, free, chance.choice((1, 2)), chance.choice((2, max(1, nodes // 2), nodes, 2 * nodes))


@pytest.mark.parametrize(("nodes", "free", "gpus", "pods"), list(grid()))
def test_under_a_constant_load_no_pod_is_moved_after_six_hours(
    nodes: int, free: Free, gpus: int, pods: int, tmp_path: Path
) -> None:
    outcome = outcome_of(tmp_path, nodes, free, [small(gpus, pods)])
    assert outcome.simulated.broken == ()
    assert after(outcome, 6) == {"evicted": 0, "bought": 0}


@pytest.mark.parametrize(("nodes", "free", "packed"), [(20, (2, 0), 6), (10, (2, 0), 5), (10, (1, 2), 5)], ids=str)
def test_nodes_that_are_little_used_are_packed_though_others_are_kept_free(
    nodes: int, free: Free, packed: int, tmp_path: Path
) -> None:
    large = {"name": "large", "gpus": 7, "priority": 1, "runsFor": "2h", "bursts": {"jobs": nodes, "every": "48h"}}
    outcome = outcome_of(tmp_path, nodes, free, [large, small(1, nodes, begins="30m")])
    assert outcome.simulated.broken == ()
    # Beside each large job there is a small pod, which stays alone when the job has finished.
    assert busy_at(outcome, 1) >= nodes
    assert busy_at(outcome, 8) <= packed
    assert after(outcome, 8) == {"evicted": 0, "bought": 0}


def test_where_no_more_nodes_are_emptied_at_once_than_are_kept_free_it_rests(tmp_path: Path) -> None:
    large = {"name": "large", "gpus": 7, "priority": 1, "runsFor": "2h", "bursts": {"jobs": 10, "every": "48h"}}
    workloads = [large, small(1, 10, begins="30m")]
    outcome = outcome_of(tmp_path, 10, (4, 0), workloads, maxDrainParallelism=2)
    assert outcome.simulated.broken == ()
    assert after(outcome, 6) == {"evicted": 0, "bought": 0}
