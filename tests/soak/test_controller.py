"""Controllers that are killed in the middle of their writes, and leaders that are woken too late, many times over."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.results.record import Recorder, Result
from tests.stages.controlled import Site
from tests.stages.killing import POOLS, Killing
from tests.stages.standoff import Standoff

KILLS, STOPS, SEED = 50, 100, 2


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[Site]:
    made = Site(cluster, tmp_path)
    yield made
    made.clean()


@pytest.mark.soak
def test_kills_at_any_write(site: Site, recorder: Recorder) -> None:
    with site.lab.proxy() as proxy:
        killing = Killing(site, proxy, SEED)
        killing.run(KILLS)
    written = killing.writes()
    wanted = {(name, number): 1 for name in POOLS for number in range(KILLS + 1)}
    wrong = sorted(key for key in written.keys() | wanted.keys() if written.get(key) != wanted.get(key))
    figures: dict[str, float | int | str] = {"killed after the API server had the write": killing.kills_after_the_write}
    what = "writes that took effect not once, though the controller was killed at one of every six of them"
    recorder.write(Result("soak-kills", what, KILLS, len(wrong), SEED, figures))
    assert wrong == []


@pytest.mark.soak
def test_leaders_that_are_woken_past_their_lease(site: Site, recorder: Recorder) -> None:
    with Standoff(site) as standoff:
        rounds = [standoff.round(number) for number in range(STOPS)]
    failed = [each for each in rounds if each.stale_writes or each.at_the_end != each.wished or each.refused != 409]
    what = "leaders stopped past their Lease in the middle of a write, and woken, whose write took effect"
    recorder.write(Result("soak-stale-leaders", what, STOPS, len(failed), SEED))
    assert failed == []


@pytest.mark.soak
def test_another_replica_leads_within_20_seconds_of_the_death_of_the_first(site: Site, recorder: Recorder) -> None:
    site.write()
    with site.replica() as first, site.replica() as second:
        leads, waits = Standoff.roles(first, second)
        began = time.monotonic()
        leads.kill()
        waits.wait_until_leading(within=30)
        seconds = time.monotonic() - began
    recorder.write(
        Result(
            "soak-failover",
            "deaths after which nobody led for 20 s",
            1,
            int(seconds >= 20),
            0,
            {"seconds": round(seconds, 1)},
        )
    )
    assert seconds < 20
