"""Small parts of a running replica: its clock, its term, what it wishes for, and what it measures."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from reconciler.controller import loop_thread
from reconciler.controller.loop_thread import WakingClock
from reconciler.controller.policies import Origins, PolicyCache, read, watch
from reconciler.kube.api_server import ApiRequest, ApiResponse
from reconciler.kube.leader import Candidacy, Leader, LeaderFence, monotonic_ms
from reconciler.model.bundle import Bundle
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Outcome, Ref
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.protocol.leadership import Monotonic
from reconciler.serve.metrics import Metrics
from tests.lab.places import REPOSITORY

GUARD = (REPOSITORY / "tests/policies/good/shared/base/guard.yaml").read_text()
CLUSTER = "9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21"


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> Monotonic:
        return Monotonic(self.now)


def test_a_term_that_has_ended_stays_ended_whatever_is_heard_later() -> None:
    clock = Hand()
    term = LeaderFence(Monotonic(10), clock)
    assert term.holds()
    clock.now = 9
    assert term.extend(Monotonic(20))
    clock.now = 19
    assert term.holds()
    clock.now = 20
    assert not term.extend(Monotonic(1_000))
    assert not term.holds()
    another = LeaderFence(Monotonic(10**9), clock)
    another.end()
    assert not another.holds()
    assert not another.extend(Monotonic(10**9))


class Lost:
    """A server on which a Lease is made just as its maker is told to end."""

    def __init__(self) -> None:
        self.on_send: Callable[[], None] = lambda: None

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = "") -> ApiResponse:
        return ApiResponse(404)

    def send(self, request: ApiRequest) -> ApiResponse:
        self.on_send()
        lease = msgspec.json.decode(request.body)
        lease["metadata"]["resourceVersion"] = "7"
        return ApiResponse(201, msgspec.json.encode(lease))


def test_who_is_told_to_end_while_it_takes_the_lease_does_not_lead() -> None:
    server = Lost()
    leader = Leader(server, Candidacy("me"))
    server.on_send = leader.resign
    leader.start()
    for thread in (each for each in threading.enumerate() if each.name == "leadership"):
        thread.join(20)
    assert not leader.is_alive
    assert leader.term() is None


def test_a_lease_that_a_ghost_holds_for_68_years_is_told_of_and_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    began, hand, spec = monotonic_ms(), Hand(), {"holderIdentity": "ghost\n" * 50, "leaseDurationSeconds": 2**31 - 1}
    body = msgspec.json.encode({"metadata": {"name": "reconciler", "resourceVersion": "1"}, "spec": spec})
    server = Lost()
    server.get = lambda *_: ApiResponse(200, body)  # type: ignore[method-assign]
    monkeypatch.setattr("reconciler.kube.leader.monotonic_ms", hand)
    hand.now = began
    leader = Leader(server, Candidacy("me"))
    for after in (0, 14_999, 29_000, 44_000):
        hand.now = began + after
        leader.step()
        assert (leader.why_leaderless, leader.term()) == ("", None)
    hand.now = began + 45_000
    leader.step()
    assert leader.why_leaderless.startswith("no leader for 30 s: ghost\\nghost")
    assert leader.why_leaderless.endswith("holds Lease/gpu-system/reconciler but does not renew it")
    hand.now = began + 60_000
    leader.step()
    assert (leader.why_leaderless, leader.term() is not None) == ("", True)


def test_who_waits_is_woken_by_a_change_or_by_the_hour_and_not_kept_when_it_ends() -> None:
    clock = WakingClock()
    clock.wait(Instant(clock.now() - 1))  # it is past already
    clock.wait(Instant(clock.now() + 20))
    clock.wake()
    clock.wait(None)  # it has happened already
    woken = threading.Event()

    def wait() -> None:
        clock.wait(None)
        woken.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not woken.is_set()
    clock.wake()
    waiting.join(20)
    assert woken.is_set()
    clock.hurry()
    clock.wait(None)


def test_an_hour_that_is_set_back_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_thread, "LOOK_SECONDS", 0.01)
    hours = iter([50_000_000, 50_000_000, 10_000_000])
    monkeypatch.setattr(loop_thread, "current_instant", lambda: Instant(next(hours)))
    WakingClock().wait(Instant(50_001_000))
    assert next(hours, None) is None


class Once:
    """A source of one bundle."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.last_refused: Bundle | None = None

    def latest(self) -> Bundle:
        return self.bundle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    policies = tmp_path / "policies"
    (policies / "base").mkdir(parents=True)
    (policies / "base" / "guard.yaml").write_text(GUARD)
    return policies


def test_the_last_good_wish_stays_while_what_comes_after_it_is_refused(folder: Path) -> None:
    changed, wishes = threading.Semaphore(0), PolicyCache()
    source = watch(Origins((folder,)), changed.release, wishes.judge)
    assert wishes.wish(CLUSTER).desired is None
    wishes.source = source
    assert wishes.wish(CLUSTER).problems, "nothing has been read yet, and that is said"
    source.start()
    try:
        assert changed.acquire(timeout=20)
        good = wishes.wish(CLUSTER)
        assert good.desired
        assert [guard.name for guard in good.desired.guards] == ["fleet"]
        assert wishes.wish(CLUSTER).desired is good.desired
        (folder / "base" / "guard.yaml").write_text(GUARD.replace("ChangeGuard", "ChangGuard"))
        assert changed.acquire(timeout=20)
        bad = wishes.wish(CLUSTER)
        assert bad.desired is good.desired
        assert {each.code for each in bad.problems} == {"RC102"}
        (folder / "base" / "guard.yaml").write_text(GUARD)
        assert changed.acquire(timeout=20)
        assert wishes.wish(CLUSTER).problems == ()
    finally:
        source.stop()


def test_where_several_environments_could_be_meant_nothing_is_wished_and_why_is_said(folder: Path) -> None:
    for name in ("stage", "test"):
        overlay = folder / "overlays" / name
        overlay.mkdir(parents=True)
        (overlay / "guard.yaml").write_text(GUARD)

    bundle = read(Origins((folder,)))
    for environment, expected in ((None, None), ("stage", "stage"), ("prod", None)):
        wishes = PolicyCache(environment)
        assert wishes.judge(bundle)
        wishes.source = Once(bundle)
        found = wishes.wish("unknown")
        assert (found.desired.environment if found.desired else None) == expected
        assert bool(found.why) == (expected is None)


def test_writes_that_are_refused_are_told_until_they_succeed_or_nobody_asks_for_them() -> None:
    metrics, ref = Metrics(), Ref("Pod", "team-a", "p")
    told = 'reconciler_writes_refused{verb="delete"}'
    refused = CycleResult(Instant(1_000), outcomes=(Outcome(ref, "delete", "refused", "no rights"),))
    metrics.publish(refused)
    assert f"{told} 1.0" in metrics.text().decode().splitlines()
    metrics.publish(CycleResult(Instant(2_000), outcomes=(Outcome(ref, "delete", "done"),)))
    assert f"{told} 0.0" in metrics.text().decode().splitlines()
    metrics.publish(refused)
    metrics.publish(CycleResult(Instant(3_000), plan=Plan("", (), (), Memory(), Hints(), None)))
    assert f"{told} 0.0" in metrics.text().decode().splitlines()


def test_what_is_measured_is_counted_and_what_is_no_more_is_told_as_none() -> None:
    metrics = Metrics()
    done = Outcome(Ref("Node", "", "n1"), "taint", "done")
    metrics.publish(CycleResult(Instant(2_000), outcomes=(done, done)))
    metrics.publish(CycleResult(Instant(3_000), trouble="nobody answers"))
    metrics.lead(True)
    told = metrics.text().decode()
    for line in (
        'reconciler_cycles_total{result="fine"} 1.0',
        'reconciler_cycles_total{result="trouble"} 1.0',
        'reconciler_writes_total{result="done",verb="taint"} 2.0',
        "reconciler_last_cycle_timestamp_seconds 3.0",
        "reconciler_leads 1.0",
    ):
        assert line in told.splitlines()
