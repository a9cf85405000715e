"""A controller that is killed in the middle of its writes comes to the end that it would have come to, writing once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import main
from tests.lab.lab import Lab
from tests.stages.controlled import Site
from tests.stages.killing import POOLS, Killing

KILLS, SEED = 3, 1


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[Site]:
    made = Site(cluster, tmp_path)
    yield made
    made.clean()


def test_killed_at_any_write_it_finishes_and_repeats_none(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with site.lab.proxy() as proxy:
        killing = Killing(site, proxy, SEED)
        killing.run(KILLS)
    assert killing.writes() == {(name, number): 1 for name in POOLS for number in range(KILLS + 1)}
    assert 0 < killing.kills_after_the_write < KILLS
    monkeypatch.setenv("KUBECONFIG", str(site.kubeconfig))
    assert main(["plan", "--policies", str(site.policies), "--detailed-exitcode"]) == 0, capsys.readouterr().out
