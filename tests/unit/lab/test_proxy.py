"""The fault proxy: what it lets through, what each fault does to a request, and that it leaves nothing behind."""

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import (
    Act,
    Answer,
    Cut,
    Delay,
    DelayAnswer,
    Fault,
    LoseAnswer,
    Match,
    OldList,
    Repeat,
    Request,
    Silence,
)
from tests.unit.lab.proxy_stage import Papers, Stage, staged, write_papers

NODE = "/api/v1/nodes/a"


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return write_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture
def stage(papers: Papers) -> Iterator[Stage]:
    with staged(papers) as stage:
        yield stage


def test_a_request_and_its_answer_pass_unchanged(stage: Stage) -> None:
    client = stage.connect()
    client.request("PATCH", NODE + "?fieldManager=me", b'{"spec":1}', {"Authorization": "Bearer t", "TE": "x"})
    response = client.getresponse()
    assert (response.status, json.load(response)) == (200, {"number": 1})
    assert response.headers["Content-Type"] == "application/json"
    [seen] = stage.upstream.seen
    assert (seen.method, seen.path, seen.body) == ("PATCH", NODE + "?fieldManager=me", b'{"spec":1}')
    assert (seen.headers["Authorization"], seen.headers["TE"]) == ("Bearer t", None)
    [exchange] = stage.proxy.exchanges
    assert (exchange.method, exchange.path, exchange.status) == ("PATCH", NODE + "?fieldManager=me", 200)
    assert exchange.reached_upstream
    assert exchange.fault is None


def test_requests_of_one_client_share_a_connection_on_both_sides(stage: Stage) -> None:
    client = stage.connect()
    for method, path, body in (
        ("GET", "/large", b"x" * 3_000_000),
        ("GET", "/chunked", b'{"number": 2}'),
        ("HEAD", NODE, b""),
        ("DELETE", NODE, b'{"number": 4}'),
    ):
        client.request(method, path)
        assert client.getresponse().read() == body
    client.request("POST", "/api/v1/nodes", iter([b"in ", b"chunks"]), encode_chunked=True)
    assert client.getresponse().status == 200
    assert stage.upstream.seen[-1].body == b"in chunks"
    assert stage.upstream.connections == 1


@pytest.mark.parametrize(("status", "reason"), [(409, "Conflict"), (410, "Expired"), (500, "InternalError")])
def test_an_answer_of_the_proxy_looks_like_the_api_servers(stage: Stage, status: int, reason: str) -> None:
    fault = stage.proxy.inject(Fault(Answer(status)))
    answered, body = stage.ask("PUT", NODE, b"{}")
    assert answered == status
    assert json.loads(body).items() >= {"kind": "Status", "code": status, "reason": reason}.items()
    [exchange] = stage.proxy.exchanges
    assert (exchange.status, exchange.fault, exchange.reached_upstream) == (status, fault, False)
    assert stage.upstream.seen == []


def test_a_refusal_says_when_to_come_back(stage: Stage) -> None:
    stage.proxy.inject(Fault(Answer(429, message="slow down", retry_after=7)))
    client = stage.connect()
    client.request("GET", NODE)
    response = client.getresponse()
    assert response.headers["Retry-After"] == "7"
    assert json.load(response).items() >= {"message": "slow down", "details": {"retryAfterSeconds": 7}}.items()


def test_a_delayed_write_arrives_late_and_is_done_even_when_its_client_has_gone(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(Delay(0.1)))
    client = stage.connect()
    began_at = time.monotonic()
    client.request("PATCH", "/slow", b"{}")
    stage.proxy.wait_for(fault)
    client.close()
    assert stage.upstream.seen == []
    assert stage.upstream.arrived.get(timeout=20).method == "PATCH"
    assert time.monotonic() - began_at >= 0.1
    assert not stage.upstream.hung_up.get(timeout=20)


def test_a_delayed_answer_leaves_the_request_prompt(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(DelayAnswer(600)))
    client = stage.connect()
    client.request("PATCH", NODE, b"{}")
    stage.proxy.wait_for(fault)
    assert len(stage.upstream.seen) == 1
    assert stage.proxy.exchanges[0].status is None
    stage.proxy.clear()
    assert client.getresponse().status == 200


@pytest.mark.parametrize("path", [NODE, "/chunked"])
def test_a_cut_answer_closes_the_connection_midway(stage: Stage, path: str) -> None:
    stage.proxy.inject(Fault(Cut(after_bytes=5)))
    client = stage.connect()
    client.request("GET", path)
    response = client.getresponse()
    with pytest.raises(http.client.IncompleteRead) as cut:
        response.read()
    assert cut.value.partial == b'{"num'
    assert stage.proxy.exchanges[0].reached_upstream


def test_a_request_cut_before_the_api_server_never_reaches_it(stage: Stage) -> None:
    stage.proxy.inject(Fault(Cut(before_upstream=True)))
    with pytest.raises(http.client.RemoteDisconnected):
        stage.ask("POST", NODE)
    assert stage.upstream.seen == []


def test_a_repeated_request_is_answered_with_the_last_answer(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(Repeat(3)))
    assert stage.ask("POST", "/api/v1/nodes", b"{}") == (200, b'{"number": 3}')
    assert [seen.body for seen in stage.upstream.seen] == [b"{}"] * 3
    [exchange] = stage.proxy.exchanges
    assert (exchange.deliveries, exchange.fault) == (3, fault)


def test_an_old_list_is_the_first_or_the_last_recorded(stage: Stage) -> None:
    stage.proxy.inject(Fault(OldList(), times=None))
    first, _, third = (stage.ask("GET", f"/api/v1/nodes?limit=5&resourceVersion={version}") for version in "012")
    assert first == third == (200, b'{"number": 1}')
    stage.proxy.clear()
    assert stage.ask("GET", "/api/v1/nodes?resourceVersion=0&limit=5")[1] == b'{"number": 2}'
    stage.proxy.inject(Fault(OldList(first=False), times=None))
    assert stage.ask("GET", "/api/v1/nodes?limit=5")[1] == b'{"number": 2}'
    for number in (b"3", b"4"):
        assert stage.ask("GET", "/api/v1/nodes?limit=5&continue=more")[1] == b'{"number": %b}' % number
    stage.proxy.record_lists = False
    stage.proxy.record_lists = True
    assert stage.ask("GET", "/api/v1/nodes?limit=5")[1] == b'{"number": 5}'


def test_a_page_that_was_never_recorded_is_left_alone(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(OldList()))
    assert stage.ask("GET", "/api/v1/nodes")[1] == b'{"number": 1}'
    with pytest.raises(TimeoutError, match="fired 0 times"):
        stage.proxy.wait_for(fault, 0)


def test_a_silent_request_is_answered_by_nobody_until_the_faults_are_cleared(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(Silence()))
    client = stage.connect()
    client.request("POST", "/api/v1/nodes")
    stage.proxy.wait_for(fault)
    assert stage.ask("GET", NODE)[0] == 200
    stage.proxy.clear()
    with pytest.raises(http.client.RemoteDisconnected):
        client.getresponse()
    assert [seen.method for seen in stage.upstream.seen] == ["GET"]


def test_a_lost_answer_follows_a_request_that_was_done(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(LoseAnswer()))
    with pytest.raises(http.client.RemoteDisconnected):
        stage.ask("POST", "/api/v1/nodes")
    stage.proxy.wait_for(fault)
    assert [seen.method for seen in stage.upstream.seen] == ["POST"]
    assert stage.proxy.exchanges[0].status is None


def test_faults_fire_in_the_order_they_were_injected_one_a_request(stage: Stage) -> None:
    conflict = stage.proxy.inject(Fault(Answer(409), Match(method="PATCH", path=r"/nodes/a$"), times=2, skip=1))
    refusal = stage.proxy.inject(Fault(Answer(503), Match(verb="patch", body="spec")))
    assert [stage.ask("PATCH", NODE, b'{"spec":1}')[0] for _ in range(5)] == [503, 409, 409, 200, 200]
    stage.proxy.wait_for(conflict)
    assert [exchange.fault for exchange in stage.proxy.exchanges] == [refusal, conflict, conflict, None, None]


def test_a_match_asks_for_everything_it_names() -> None:
    request = Request("PATCH", "/api/v1/nodes/a?dryRun=All", body=b'{"spec":1}')
    for match in (Match(), Match(method="patch", path=r"dryRun=", watch=False, verb="patch", body="spec")):
        assert match.accepts(request)
    for match in (Match(method="PUT"), Match(path="pods"), Match(watch=True), Match(verb="list"), Match(body="status")):
        assert not match.accepts(request)


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("GET", "/api/v1/nodes", "list"),
        ("GET", "/api/v1/nodes?watch=1", "watch"),
        ("GET", "/api/v1/nodes?watch=false", "list"),
        ("GET", "/api/v1/namespaces/x", "get"),
        ("GET", "/api/v1/namespaces/x/status", "get"),
        ("GET", "/apis/apps/v1/namespaces/x/deployments", "list"),
        ("POST", "/api/v1/namespaces/x/pods/p/eviction", "create"),
        ("PUT", "/apis/apps/v1/namespaces/x/deployments/d/scale", "update"),
        ("DELETE", "/api/v1/nodes/a", "delete"),
        ("DELETE", "/api/v1/nodes", "deletecollection"),
        ("GET", "/apis/apps/v1", "get"),
        ("GET", "/readyz", "get"),
    ],
)
def test_a_request_has_the_verb_the_api_server_would_authorise(method: str, path: str, verb: str) -> None:
    assert Request(method, path).verb == verb


def test_an_api_server_that_is_down_or_not_to_be_trusted_is_a_bad_gateway(
    papers: Papers, stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = write_papers(tmp_path_factory.mktemp("stranger"))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    for address, authority in (
        (f"https://127.0.0.1:{port}", papers.authority),
        (f"https://127.0.0.1:{stage.upstream.server_port}", stranger.authority),
    ):
        with Proxy(upstream=address, authority=authority, certificate=papers.certificate, key=papers.key) as proxy:
            other = Stage(stage.upstream, proxy, papers)
            status, body = other.ask("GET", NODE)
            other.close()
        assert (status, json.loads(body)["kind"]) == (502, "Status")
    assert stage.upstream.seen == []


def test_fifty_clients_are_served_side_by_side(stage: Stage) -> None:
    together = threading.Barrier(50, timeout=20)

    def work(_: int) -> set[int]:
        client = stage.connect()
        together.wait()
        statuses = set()
        for _ in range(10):
            client.request("GET", NODE)
            response = client.getresponse()
            response.read()
            statuses.add(response.status)
        return statuses

    with ThreadPoolExecutor(50) as pool:
        assert set.union(*pool.map(work, range(50))) == {200}
    assert len(stage.proxy.exchanges) == 500


def test_stopping_ends_whatever_is_under_way_and_leaves_no_thread(papers: Papers, stage: Stage) -> None:
    before = set(threading.enumerate())
    address = f"https://127.0.0.1:{stage.upstream.server_port}"
    with Proxy(upstream=address, authority=papers.authority, certificate=papers.certificate, key=papers.key) as proxy:
        other = Stage(stage.upstream, proxy, papers)
        watching, _ = other.watch()
        acts: tuple[Act, ...] = (Silence(), Delay(600), DelayAnswer(600))
        faults = [proxy.inject(Fault(act, Match(path=f"/{number}$"))) for number, act in enumerate(acts)]
        faults.append(proxy.inject(Fault(Silence(after_events=0))))
        half_open, _ = other.watch()
        for number in range(3):
            other.connect().request("GET", f"/{number}")
        for fault in faults:
            proxy.wait_for(fault)
        not_yet_greeted = socket.create_connection(("127.0.0.1", urlsplit(proxy.url).port or 0))
        idle = other.connect()
        idle.request("GET", NODE)
        idle.getresponse().read()
        during = set(threading.enumerate()) - before
        stopping_at = time.monotonic()
    assert time.monotonic() - stopping_at < 20
    assert len([thread for thread in during if "proxy" in thread.name]) == 8
    assert not [thread for thread in set(threading.enumerate()) - before if "proxy" in thread.name]
    for watch in (watching, half_open):
        with pytest.raises((http.client.IncompleteRead, ssl.SSLError)):
            watch.read()
    not_yet_greeted.close()
    other.close()
