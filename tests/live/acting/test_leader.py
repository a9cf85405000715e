"""Leadership by a real Lease: one at a time, no longer than it is renewed, and given back at the end."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.kube.client import Client
from reconciler.kube.connections import Timeouts
from reconciler.kube.leader import Candidacy, Leader
from reconciler.model import names
from reconciler.protocol.leadership import LeaseTiming
from tests.lab.identities import NAMESPACE
from tests.lab.lab import Lab
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import Fault, LoseAnswer, Match, Silence
from tests.stages.controlled import Site

QUICK = LeaseTiming(lease_ms=3_000, renew_ms=2_000, retry_ms=100)
NAME = names.LEADER_LEASE  # the account may write no other
WRITES = Match(method="PUT", path="/leases/")

Candidate = Callable[[str], Leader]


@pytest.fixture
def proxy(cluster: Lab) -> Iterator[Proxy]:
    with cluster.proxy() as proxy:
        yield proxy


@pytest.fixture
def candidate(cluster: Lab, proxy: Proxy, tmp_path: Path) -> Iterator[Candidate]:
    """Starts one that asks through the proxy."""
    started: list[tuple[Leader, Client]] = []
    site = Site(cluster, tmp_path)

    def start(name: str) -> Leader:
        credential = site.controller.credential
        client = Client.at(proxy.url, site.controller.authority, credential.token, Timeouts(answer_seconds=0.5))
        leader = Leader(client, Candidacy(name, NAMESPACE, NAME, QUICK))
        started.append((leader, client))
        leader.start()
        return leader

    cluster.admin.delete("leases", NAME, NAMESPACE)
    yield start
    for leader, client in started:
        leader.resign()
        client.close()
    site.clean()
    cluster.admin.delete("leases", NAME, NAMESPACE)


def until(is_so: Callable[[], object], within: float = 30) -> float:
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < within
        time.sleep(0.01)
    return time.monotonic() - began


def test_one_leads_and_the_other_follows_it_at_once_when_it_gives_up(candidate: Candidate) -> None:
    first = candidate("first")
    term = first.wait_for_term(30)
    assert term
    second = candidate("second")
    assert second.wait_for_term(30) is None, "the first is seen to renew"
    assert second.holder == "first"
    first.release()
    assert not term.holds()
    assert until(second.term) < QUICK.lease_ms / 1000, "nobody waits for a Lease that was given back"


def test_who_only_ends_is_followed_when_its_lease_has_run_out(candidate: Candidate) -> None:
    first = candidate("first")
    assert first.wait_for_term(30)
    first.resign()
    second = candidate("second")
    assert until(second.term) >= 2.5


def test_whose_renewals_are_not_answered_acts_no_longer_and_leads_again_in_another_term(
    candidate: Candidate, proxy: Proxy
) -> None:
    leader = candidate("first")
    term = leader.wait_for_term(30)
    assert term
    until(lambda: leader.trouble == "" and term.holds())
    proxy.inject(Fault(Silence(), Match(path="/leases/"), times=None))
    assert until(lambda: not term.holds()) < QUICK.lease_ms / 1000, "before anyone else may lead"
    assert leader.term() is None
    until(lambda: "stopped responding" in leader.trouble)
    proxy.clear()
    until(leader.term)
    assert leader.term() is not term
    assert not term.holds()


def test_a_renewal_whose_answer_is_lost_costs_nothing(candidate: Candidate, proxy: Proxy) -> None:
    leader = candidate("first")
    term = leader.wait_for_term(30)
    lost = proxy.inject(Fault(LoseAnswer(), WRITES))
    proxy.wait_for(lost)
    renewed = proxy.inject(Fault(LoseAnswer(), WRITES, skip=3))
    proxy.wait_for(renewed)
    assert leader.term() is term


def test_what_stands_in_the_lease_is_for_kubernetes_to_read(candidate: Candidate, cluster: Lab) -> None:
    leader = candidate("first")
    assert leader.wait_for_term(30)
    lease = cluster.admin.get("leases", NAME, NAMESPACE)
    assert lease
    spec = lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("first", 3)
    began = spec["acquireTime"]
    cluster.admin.wait_for("leases", NAME, lambda found: found and found["spec"]["renewTime"] > began, NAMESPACE)
    leader.release()
    left = cluster.admin.get("leases", NAME, NAMESPACE)
    assert left
    assert "holderIdentity" not in left["spec"]
