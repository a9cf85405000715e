"""Whatever happens to a watch on its way, what is seen is what there is, in the end and without haste."""

import time
from collections.abc import Iterator

import pytest

from reconciler.kube.api_server import BackoffBounds
from reconciler.kube.connections import Timeouts
from reconciler.kube.watch.reflector import ReflectorTiming
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from tests.lab import fleet
from tests.lab.lab import Lab
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import (
    Act,
    Answer,
    Cut,
    DelayAnswer,
    EndWatch,
    Fault,
    Garbage,
    Match,
    OldList,
    Repeat,
    Silence,
    WatchError,
)
from tests.slow import long
from tests.stages.observing import Watched, client_of, listed_by, seen_by

QUICK = ReflectorTiming(
    silence_seconds=1, overdue_seconds=3, absent_seconds=1, waits=BackoffBounds(first_seconds=0.05, most_seconds=0.5)
)
NODES = "/api/v1/nodes[?]"
LISTS = Match(verb="list", path=NODES)
WATCHES = Match(watch=True, path=NODES)


@pytest.fixture
def proxy(cluster: Lab) -> Iterator[Proxy]:
    with cluster.proxy() as proxy:
        yield proxy


def observing(cluster: Lab, proxy: Proxy, pace: ReflectorTiming = QUICK) -> Watched:
    return Watched(client_of(cluster, proxy.url, Timeouts(answer_seconds=1)), pace)


def stir(cluster: Lab, round_: str) -> None:
    """One node changed, one gone, one come."""
    label(cluster, round_)
    cluster.admin.delete("nodes", f"{round_}-0")
    cluster.load(fleet.nodes(1, prefix=f"after-{round_}"))


def label(cluster: Lab, round_: str) -> None:
    cluster.admin.merge(cluster.admin.path("nodes", "gpu-0"), {"metadata": {"labels": {"round": round_}}})


def until_met(fault: Fault, cluster: Lab, proxy: Proxy) -> None:
    """All that happened may be over before the next watch begins: so more happens, until that has met the fault."""
    for more in range(30):
        try:
            return proxy.wait_for(fault, timeout_seconds=1)
        except TimeoutError:
            label(cluster, str(more))
    return proxy.wait_for(fault)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(WatchError(410, after_events=1), WATCHES, times=2),
        long(Fault(WatchError(500, after_events=1), WATCHES, times=2)),
        Fault(EndWatch(after_events=1), WATCHES, times=2),
        Fault(Garbage(after_events=1), WATCHES, times=2),
        long(Fault(Garbage(after_events=1, payload=b"\xff\x00 no JSON\n"), WATCHES, times=2)),
        Fault(Cut(after_bytes=700), WATCHES, times=2),
        Fault(Repeat(3), WATCHES, times=2),
        Fault(DelayAnswer(0.4), WATCHES, times=2),
        Fault(Silence(after_events=1), WATCHES, times=1),
        long(Fault(Silence(), WATCHES, times=1)),
        Fault(Answer(410), WATCHES, times=2),
        long(Fault(Answer(504), WATCHES, times=2)),
        Fault(Answer(429, retry_after=1), WATCHES, times=1),
        long(Fault(Answer(410), LISTS, times=2)),
        Fault(Answer(500), LISTS, times=2),
        long(Fault(Cut(after_bytes=100), LISTS, times=2)),
        Fault(Silence(), LISTS, times=1),
        Fault(Cut(before_upstream=True), Match(), times=30),
    ],
    ids=lambda fault: f"{fault.act} of {'each request' if fault.when == Match() else fault.when.verb or 'watch'}",
)
def test_after_a_fault_the_store_is_what_there_is(fault: Fault, cluster: Lab, proxy: Proxy) -> None:
    cluster.load([*fleet.nodes(2), *fleet.nodes(1, prefix="first"), *fleet.nodes(1, prefix="second")])
    proxy.inject(fault)
    with observing(cluster, proxy) as watched:
        watched.synced()
        stir(cluster, "first")
        if fault.when == WATCHES and not isinstance(fault.act, Repeat | DelayAnswer):
            until_met(fault, cluster, proxy)
        stir(cluster, "second")
        watched.until(lambda seen: not seen.unread and seen_by(seen) == listed_by(cluster.admin))
    assert any(each.fault is fault for each in proxy.exchanges), "the fault met nothing"
    assert len(proxy.exchanges) < 6 * len(RESOURCE_KINDS)


def test_what_vanished_while_nobody_watched_is_gone(cluster: Lab, proxy: Proxy) -> None:
    cluster.load([*fleet.nodes(2), *fleet.nodes(1, prefix="first")])
    expired = proxy.inject(Fault(WatchError(410, after_events=1), WATCHES))
    proxy.inject(Fault(Answer(500), LISTS, times=2, skip=1))
    with observing(cluster, proxy) as watched:
        watched.synced()
        cluster.admin.merge(cluster.admin.path("nodes", "gpu-0"), {"metadata": {"labels": {"a": "b"}}})
        proxy.wait_for(expired)
        cluster.admin.delete("nodes", "first-0")
        seen = watched.until(lambda seen: len(seen.nodes) == 2)
        assert seen_by(seen)["nodes"] == listed_by(cluster.admin)["nodes"]


def test_an_old_list_is_not_believed_and_is_told_as_unread(cluster: Lab, proxy: Proxy) -> None:
    cluster.load(fleet.nodes(1))
    proxy.inject(Fault(WatchError(410, after_events=1, naming=b"late-0"), WATCHES))
    proxy.inject(Fault(OldList(), LISTS, times=3))
    with observing(cluster, proxy) as watched:
        watched.synced()
        cluster.load(fleet.nodes(1, prefix="late"))
        doubted = watched.until(lambda seen: seen.unread)
        assert "older than the observed version" in doubted.why_unread("nodes")
        assert {each.name for each in doubted.nodes} == {"gpu-0", "late-0"}
        believed = watched.until(lambda seen: not seen.unread)
        assert {each.name for each in believed.nodes} == {"gpu-0", "late-0"}


@pytest.mark.parametrize("act", [long(Cut(before_upstream=True)), Answer(500), long(EndWatch())], ids=str)
def test_what_fails_at_once_is_never_asked_for_in_a_busy_loop(act: Act, cluster: Lab, proxy: Proxy) -> None:
    proxy.inject(Fault(act, times=None))
    began = time.monotonic()
    with observing(cluster, proxy, ReflectorTiming()):
        time.sleep(2)
        asked = len(proxy.exchanges)
        spent = time.monotonic() - began
    # The waits of 0.2, 0.4, 0.8, 1.6 s and so on are each cut by half at most. A watch that ends at once needs two more
    # requests to come to it.
    tries, waited = 1, 0.1
    while waited <= spent:
        tries, waited = tries + 1, waited + 0.1 * 2**tries
    assert len(RESOURCE_KINDS) < asked <= (tries + 2) * len(RESOURCE_KINDS)
