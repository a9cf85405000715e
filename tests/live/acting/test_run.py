"""The controller on a real cluster: it acts on a commit, leads alone, and leaves nothing behind when it ends."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.stages.controlled import Site


@pytest.fixture
def site(cluster: Lab, tmp_path: Path) -> Iterator[Site]:
    made = Site(cluster, tmp_path)
    yield made
    made.clean()


def test_a_commit_becomes_a_node_pool_and_the_end_gives_the_lease_back(site: Site) -> None:
    site.write()
    with site.replica() as replica:
        site.lab.admin.wait_for("nodepools", "a100", bool)
        line = replica.wait_for(lambda line: line["event"] == "written" and line["subject"] == "NodePool/a100")
        assert (line["action"], line["result"]) == ("apply", "done")
        assert replica.get("/healthz") == (200, "ok")
        assert replica.get("/readyz") == (200, "ok")
        assert "reconciler_leads 1.0" in replica.get("/metrics")[1]
        assert site.lease_holder()
        site.write("h100")
        site.lab.admin.wait_for("nodepools", "h100", bool, within=20)
        code, seconds = replica.terminate()
        assert (code, site.lease_holder()) == (0, "")
        assert seconds < 20


def test_a_planner_that_dies_is_started_again_and_ends_with_its_parent(site: Site) -> None:
    site.write()
    with site.replica() as replica:
        site.lab.admin.wait_for("nodepools", "a100", bool)
        replica.wait_for(lambda line: line["event"] == "written")
        planner = replica.planner()
        os.kill(planner, signal.SIGKILL)
        site.write("h100")
        site.lab.admin.wait_for("nodepools", "h100", bool)
        another = replica.planner()
        assert another != planner
        os.kill(replica.pid, signal.SIGKILL)
        replica.wait()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{another}").exists():  # it ends by itself when nobody asks any more
        assert time.monotonic() < deadline


def test_bad_policies_leave_the_last_good_ones_in_force(site: Site) -> None:
    site.write()
    with site.replica() as replica:
        site.lab.admin.wait_for("nodepools", "a100", bool)
        good = (site.policies / "a100.yaml").read_text()
        site.put("a100.yaml", good.replace("instanceTypes", "instanceType"))
        told = replica.wait_for(lambda line: line["event"] == "policies-refused")
        assert "instanceType" in told["message"]
        since = len(replica.lines)
        site.lab.admin.delete("nodepools", "a100")
        site.lab.admin.wait_for("nodepools", "a100", lambda pool: pool and "deletionTimestamp" not in pool["metadata"])
        site.put("a100.yaml", good)
        replica.wait_for(lambda line: line["event"] == "policies-good", since=since)


def test_of_two_replicas_one_waits_and_takes_over_at_once_when_the_other_ends(site: Site) -> None:
    site.write()
    with site.replica() as first:
        first.wait_until_leading()
        with site.replica() as second:
            second.wait_for(lambda line: line["event"] == "started")
            site.lab.admin.wait_for("nodepools", "a100", bool)
            assert first.terminate()[0] == 0
            second.wait_until_leading(within=13)  # of the 15 s that a Lease lasts that was not given back
            site.write("h100")
            site.lab.admin.wait_for("nodepools", "h100", bool)
            assert not [line for line in second.lines if line["event"] == "trouble"]
