"""The misbehaving door, in front of the real API server."""

from collections.abc import Generator

import pytest
import urllib3

from tests.lab import fleet, identities
from tests.lab.api import Api, Refused
from tests.lab.lab import Lab
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import (
    Act,
    Answer,
    Cut,
    Delay,
    EndWatch,
    Fault,
    Garbage,
    LoseAnswer,
    Match,
    OldList,
    Repeat,
    WatchError,
)

PODS = f"/api/v1/namespaces/{identities.TENANT_NAMESPACE}/pods"


def pod(name: str) -> dict[str, object]:
    return fleet.Pod(name, identities.TENANT_NAMESPACE).unseen().manifest()


def names(api: Api) -> set[str]:
    return {each["metadata"]["name"] for each in api.list("pods", identities.TENANT_NAMESPACE)}


def through(lab: Lab, proxy: Proxy) -> Api:
    return identities.tenant(lab.admin).at(proxy.url)


@pytest.mark.parametrize("code", [409, 410, 429, 500])
def test_a_refusal_looks_like_the_api_server_s_and_nothing_is_written(cluster: Lab, code: int) -> None:
    audit = cluster.audit()
    with cluster.proxy() as proxy:
        tenant = through(cluster, proxy)
        proxy.inject(Fault(Answer(code, retry_after=1), Match(method="POST", path=PODS)))
        with pytest.raises(Refused) as refused:
            tenant.create(pod("p"))
        assert refused.value.code == code
        assert names(tenant) == set()
    assert audit.writes(identities.TENANT) == []


def test_a_lost_answer_is_a_write_all_the_same(cluster: Lab) -> None:
    audit = cluster.audit()
    with cluster.proxy() as proxy:
        tenant = through(cluster, proxy)
        proxy.inject(Fault(LoseAnswer(), Match(verb="create", path=PODS)))
        with pytest.raises(urllib3.exceptions.HTTPError):
            tenant.create(pod("p"))
        assert names(tenant) == {"p"}
    assert [each.code for each in audit.writes(identities.TENANT)] == [201]


def test_a_repeated_create_reaches_the_api_server_twice(cluster: Lab) -> None:
    audit = cluster.audit()
    with cluster.proxy() as proxy:
        tenant = through(cluster, proxy)
        proxy.inject(Fault(Repeat(2), Match(verb="create", path=PODS)))
        with pytest.raises(Refused, match="AlreadyExists"):
            tenant.create(pod("p"))
    assert [each.code for each in audit.writes(identities.TENANT)] == [201, 409]


def test_a_cut_before_the_api_server_leaves_no_trace(cluster: Lab) -> None:
    audit = cluster.audit()
    with cluster.proxy() as proxy:
        tenant = through(cluster, proxy)
        proxy.inject(Fault(Cut(before_upstream=True), Match(method="POST", path=PODS)))
        with pytest.raises(urllib3.exceptions.HTTPError):
            tenant.create(pod("p"))
        tenant.create(pod("p"))
    assert [each.code for each in audit.writes(identities.TENANT)] == [201]


def test_a_delayed_write_comes_after_a_later_one(cluster: Lab) -> None:
    with cluster.proxy() as proxy:
        tenant = through(cluster, proxy)
        fault = proxy.inject(Fault(Delay(30), Match(method="DELETE")))
        tenant.create(pod("p"))
        impatient = urllib3.PoolManager(ca_certs=str(tenant.authority), retries=False)
        headers = {"Authorization": f"Bearer {tenant.credential.token}"}
        with impatient, pytest.raises(urllib3.exceptions.TimeoutError):
            impatient.request("DELETE", f"{proxy.url}{PODS}/p", headers=headers, timeout=1)
        proxy.wait_for(fault)
        assert names(tenant) == {"p"}
        proxy.clear()
        cluster.admin.wait_for("pods", "p", lambda found: found is None, identities.TENANT_NAMESPACE)


def test_an_old_list_is_what_was_true_once(cluster: Lab) -> None:
    with cluster.proxy() as proxy:
        tenant = through(cluster, proxy)
        assert names(tenant) == set()
        tenant.create(pod("p"))
        proxy.inject(Fault(OldList(), Match(verb="list")))
        assert names(tenant) == set()
        assert names(tenant) == {"p"}


def watched(cluster: Lab, act: Act) -> Generator[str]:
    """Types of the events that come through while `act` is on every watch."""
    cluster.load([pod("p"), pod("q")])
    with cluster.proxy() as proxy:
        tenant = through(cluster, proxy)
        proxy.inject(Fault(act, Match(watch=True)))
        for event in tenant.watch("pods", identities.TENANT_NAMESPACE, timeout_seconds=10):
            yield event["type"] if event["type"] != "ERROR" else f"ERROR {event['object']['code']}"


def test_a_watch_that_is_too_old_says_so_and_ends(cluster: Lab) -> None:
    assert list(watched(cluster, WatchError(after_events=1))) == ["ADDED", "ERROR 410"]


def test_a_watch_ends_early(cluster: Lab) -> None:
    assert list(watched(cluster, EndWatch(after_events=1))) == ["ADDED"]


def test_a_watch_tells_everything_twice(cluster: Lab) -> None:
    events = watched(cluster, Repeat(2))
    assert [next(events) for _ in range(4)] == ["ADDED"] * 4
    events.close()


def test_a_watch_brings_what_is_no_json(cluster: Lab) -> None:
    events = watched(cluster, Garbage(after_events=1))
    assert next(events) == "ADDED"
    with pytest.raises(ValueError, match=r"delimiter|Unterminated|JSON"):
        next(events)
