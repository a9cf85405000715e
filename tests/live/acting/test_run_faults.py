"""The controller when what it asks is not answered: it ends all the same when it is told to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import Fault, Match, Silence
from tests.stages.controlled import Site

WRITES = Match(path="/nodepools/", verb="patch")


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[Site]:
    made = Site(cluster, tmp_path)
    yield made
    made.clean()


@pytest.fixture
def proxy(cluster: Lab) -> Iterator[Proxy]:
    with cluster.proxy() as proxy:
        yield proxy


def test_an_end_in_the_middle_of_a_write_waits_a_moment_and_keeps_the_lease_from_others(
    site: Site, proxy: Proxy
) -> None:
    site.write()
    stuck = proxy.inject(Fault(Silence(), WRITES))
    with site.behind(proxy) as replica:
        proxy.wait_for(stuck, 60)
        code, seconds = replica.terminate(within=30)
        assert code == 0
        assert seconds < 20
        # Nobody knows whether the write will arrive: the next one leads only when it can't any more.
        assert site.lease_holder()
        assert "the Lease expires" in replica.lines[-1]["message"]
