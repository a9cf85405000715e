"""A sample of what `make oracle` compares at length: where the real scheduler lets pods, and where we say they fit."""

import pytest

from tests.lab.lab import Lab
from tests.slow import long
from tests.stages.scheduling.comparing import Tally, compare
from tests.stages.scheduling.draw.fleet import draw_fleet
from tests.stages.scheduling.stage import SchedulingStage

FEW_FLEETS, FLEETS, PODS_A_FLEET = 3, 6, 20


@pytest.mark.parametrize("fleets", [FEW_FLEETS, long(FLEETS)])
def test_pods_fit_where_the_scheduler_lets_them(cluster: Lab, fleets: int) -> None:
    tally = Tally()
    with SchedulingStage(cluster) as stage:
        for seed in range(fleets):
            compare(stage, draw_fleet(seed, PODS_A_FLEET), tally)
    assert tally.pods + tally.refused_by_the_api_server == fleets * PODS_A_FLEET
    assert not tally.disagreements, "\n".join(map(str, tally.disagreements))
    assert {"resources", "selection", "taints"} <= tally.deciding.keys()
