"""A leader that is stopped past its Lease and woken later changes nothing any more, not even by what it had sent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.slow import long
from tests.stages.controlled import Site
from tests.stages.standoff import Standoff

ONCE, AGAIN = 1, 2


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[Site]:
    made = Site(cluster, tmp_path)
    yield made
    made.clean()


@pytest.mark.parametrize("times", [ONCE, long(AGAIN)])
def test_a_leader_that_is_woken_past_its_lease_writes_nothing_that_takes_effect(site: Site, times: int) -> None:
    with Standoff(site) as standoff:
        rounds = [standoff.round(number) for number in range(times)]
    assert [each.stale_writes for each in rounds] == [0] * times
    assert [each.refused for each in rounds] == [409] * times
    assert [each.at_the_end for each in rounds] == [each.wished for each in rounds]
