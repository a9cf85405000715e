"""The imagined Karpenter buys and takes away what the real one does; a slower one by `make test-long`, and all
of them by `make oracle`."""

import pytest

from tests.lab.lab import Lab
from tests.slow import long
from tests.stages.buying.purchases import Scenario, imagined, real
from tests.stages.buying.scenarios import SCENARIOS


@pytest.mark.parametrize("scenario", [SCENARIOS[0], long(SCENARIOS[1])], ids=lambda each: each.name)
def test_the_same_machines_are_bought_in_world_and_lab(scenario: Scenario, cluster: Lab) -> None:
    cluster.start("scheduler", "kwok", "karpenter")
    expected = imagined(scenario)
    assert real(scenario, cluster, expected) == expected
