"""The imagined Karpenter buys and takes away what the real one does; all scenarios are tried by `make oracle`."""

import pytest

from tests.lab.lab import Lab
from tests.stages.buying.purchases import Scenario, imagined, real
from tests.stages.buying.scenarios import SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS[:2], ids=lambda each: each.name)
def test_the_same_machines_are_bought_in_world_and_lab(scenario: Scenario, cluster: Lab) -> None:
    cluster.start("scheduler", "kwok", "karpenter")
    expected = imagined(scenario)
    assert real(scenario, cluster, expected) == expected
