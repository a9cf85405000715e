"""What the fault proxy lets through of a watch, and what each fault does to it."""

import http.client
import json
import time
from collections.abc import Iterator

import pytest

from tests.lab.proxy.faults import (
    Act,
    Cut,
    DelayAnswer,
    EndWatch,
    Fault,
    Garbage,
    LoseAnswer,
    Match,
    Repeat,
    Silence,
    WatchError,
)
from tests.unit.lab.proxy_stage import Papers, Stage, staged, write_papers

ONE, TWO, THREE = (b'{"type":"ADDED","object":{"number":%d}}\n' % number for number in (1, 2, 3))


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return write_papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture
def stage(papers: Papers) -> Iterator[Stage]:
    with staged(papers) as stage:
        yield stage


def test_each_watch_event_passes_at_once(stage: Stage) -> None:
    response, watch = stage.watch()
    passing_seconds = []
    for _ in range(20):
        said_at = time.monotonic()
        watch.say(ONE)
        assert response.readline() == ONE
        passing_seconds.append(time.monotonic() - said_at)
    assert min(passing_seconds) < 0.03
    watch.finish()
    assert response.read() == b""


def test_a_client_that_leaves_a_watch_ends_it_upstream(stage: Stage) -> None:
    _, watch = stage.watch()
    stage.close()
    assert watch.ended.wait(20)


def test_a_delayed_watch_is_shifted_in_time(stage: Stage) -> None:
    stage.proxy.inject(Fault(DelayAnswer(0.15)))
    began_at = time.monotonic()
    response, watch = stage.watch()
    watch.say(ONE)
    assert response.readline() == ONE
    assert time.monotonic() - began_at >= 0.3
    said_at = time.monotonic()
    for _ in range(10):
        watch.say(TWO)
    assert [response.readline() for _ in range(10)] == [TWO] * 10
    assert 0.15 <= time.monotonic() - said_at < 1.4  # one after the other they would take 1.5
    watch.finish()
    assert response.read() == b""


def test_a_cut_watch_breaks_off(stage: Stage) -> None:
    stage.proxy.inject(Fault(Cut(after_bytes=len(ONE) + 4)))
    response, watch = stage.watch()
    watch.say(ONE, TWO)
    with pytest.raises(http.client.IncompleteRead) as cut:
        response.read()
    assert cut.value.partial == ONE + TWO[:4]
    assert watch.ended.wait(20)


def test_a_repeated_watch_brings_each_event_twice(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(Repeat()))
    response, watch = stage.watch()
    watch.say(ONE, TWO[:9])
    watch.say(TWO[9:])
    assert [response.readline() for _ in range(4)] == [ONE, ONE, TWO, TWO]
    stage.proxy.wait_for(fault)


def test_a_watch_that_falls_silent_stays_open_until_the_faults_are_cleared(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(Silence(after_events=1)))
    response, watch = stage.watch()
    watch.say(ONE, TWO)
    assert response.readline() == ONE
    stage.proxy.wait_for(fault)
    assert watch.ended.wait(20)
    stage.proxy.clear()
    with pytest.raises(http.client.IncompleteRead) as cut:
        response.read()
    assert cut.value.partial == b""


@pytest.mark.parametrize("events", [0, 1])
def test_a_watch_error_is_the_last_event(stage: Stage, events: int) -> None:
    stage.proxy.inject(Fault(WatchError(after_events=events)))
    response, watch = stage.watch()
    if events:
        watch.say(ONE, TWO)
        assert response.readline() == ONE
    error = json.loads(response.read())
    assert error["type"] == "ERROR"
    assert error["object"].items() >= {"kind": "Status", "code": 410, "reason": "Expired"}.items()
    assert watch.ended.wait(20)


def test_a_watch_that_is_ended_leaves_its_connection_usable(stage: Stage) -> None:
    stage.proxy.inject(Fault(EndWatch(after_events=1)))
    client = stage.connect()
    client.request("GET", "/api/v1/nodes?watch=true")
    response = client.getresponse()
    stage.upstream.watches.get(timeout=20).say(ONE, TWO)
    assert response.read() == ONE
    client.request("GET", "/api/v1/nodes")
    assert client.getresponse().read() == b'{"number": 2}'


def test_garbage_comes_between_the_events_and_the_end(stage: Stage) -> None:
    stage.proxy.inject(Fault(Garbage(after_events=1)))
    response, watch = stage.watch()
    watch.say(ONE, TWO)
    event, rest = response.read().split(b"\n")
    assert event + b"\n" == ONE
    with pytest.raises(json.JSONDecodeError):
        json.loads(rest)


@pytest.mark.parametrize("act", [EndWatch(), WatchError(), Garbage(), Silence(after_events=0)])
def test_a_fault_of_watches_leaves_other_requests_alone(stage: Stage, act: Act) -> None:
    stage.proxy.inject(Fault(act))
    assert stage.ask("GET", "/api/v1/nodes")[0] == 200
    assert stage.proxy.exchanges[0].fault is None


def test_a_fault_that_never_took_hold_is_left_for_the_next_watch(stage: Stage) -> None:
    fault = stage.proxy.inject(Fault(EndWatch(after_events=2), Match(watch=True)))
    response, watch = stage.watch()
    watch.say(ONE)
    watch.finish()
    assert response.read() == ONE
    response, watch = stage.watch()
    watch.say(ONE, TWO, THREE)
    assert response.read() == ONE + TWO
    assert [exchange.fault for exchange in stage.proxy.exchanges] == [None, fault]


@pytest.mark.parametrize("act", [EndWatch(after_events=1), Cut(after_bytes=len(ONE)), Repeat()])
def test_a_fault_cleared_before_it_took_hold_does_nothing(stage: Stage, act: Act) -> None:
    stage.proxy.inject(Fault(act))
    response, watch = stage.watch()
    stage.proxy.clear()
    watch.say(ONE, TWO)
    watch.finish()
    assert response.read() == ONE + TWO


def test_a_lost_answer_is_not_for_watches(stage: Stage) -> None:
    stage.proxy.inject(Fault(LoseAnswer()))
    response, watch = stage.watch()
    watch.say(ONE)
    assert response.readline() == ONE
