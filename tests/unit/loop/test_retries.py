"""What was tried lately: nothing is written twice before it can be seen, and nothing that fails is knocked at."""

import msgspec

from reconciler.loop.retries import Attempts
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Annotate, Decision, Evict, Leaver, Outcome, Preconditions, Ref, Result
from tests.unit.plan.some_reasons import some_reason


def decision(name: str = "n1", version: str = "7", value: str = "1", after: tuple[str, ...] = ()) -> Decision:
    act = Annotate(annotations=(("a", value),), presumes=Preconditions(resource_version=version))
    firsts = tuple(Ref("Node", "", each) for each in after)
    return Decision("test", Ref("Node", "", name), act, some_reason("Missing"), after=firsts)


def outcome(of: Decision, result: Result) -> Outcome:
    return Outcome(of.subject, "annotate", result)


def sent(attempts: Attempts, now: int, *decisions: Decision) -> list[str]:
    return [each.subject.name for each in attempts.due(decisions, Instant(now))]


def learn(attempts: Attempts, of: Decision, result: Result, now: int = 0) -> None:
    attempts.learn(of, outcome(of, result), Instant(now))


def test_what_is_done_waits_to_be_seen_unless_something_else_is_asked_for() -> None:
    attempts = Attempts()
    learn(attempts, decision(), "done")
    assert sent(attempts, 9_999, decision()) == []
    assert sent(attempts, 9_999, decision(value="2")) == ["n1"]
    learn(attempts, decision(), "done")
    assert sent(attempts, 1, decision(version="8")) == ["n1"]
    learn(attempts, decision(), "done")
    assert sent(attempts, 10_000, decision()) == ["n1"]


def test_an_eviction_is_the_same_wherever_the_pod_would_go_now() -> None:
    def evict(home: str) -> Decision:
        subject, mate = Ref("Pod", "team", "web-0", "u0"), Ref("Pod", "team", "web-1", "u1")
        act = Evict(grace_seconds=30, others=(Leaver(mate, 30, home),), destination=home, gang="team/llama")
        return Decision("test", subject, act, some_reason("Missing"))

    attempts = Attempts()
    learn(attempts, evict("n1"), "done")
    assert sent(attempts, 9_999, evict("n2")) == []
    assert sent(attempts, 10_000, evict("n2")) == ["web-0"]


def test_what_was_refused_is_asked_for_less_and_less_often_though_its_presumptions_move_on() -> None:
    attempts, tries = Attempts(), []
    for second in range(3_000):
        asked = decision(version=str(second), value=str(second))  # a time is written
        if sent(attempts, second * 1_000, asked):
            tries.append(second)
            learn(attempts, asked, "refused", second * 1_000)
    assert tries == [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023, 1_623, 2_223, 2_823]


def test_what_was_not_possible_just_then_is_tried_every_minute_at_last() -> None:
    attempts, tries = Attempts(), []
    for second in range(250):
        if sent(attempts, second * 1_000, decision(version=str(second))):
            tries.append(second)
            learn(attempts, decision(version=str(second)), "retry", second * 1_000)
    assert tries == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_what_somebody_undoes_each_time_is_written_less_and_less_often() -> None:
    attempts, writes = Attempts(), []
    for second in range(600):
        asked = decision(version=str(second))
        if sent(attempts, second * 1_000, asked):
            writes.append(second)
            learn(attempts, asked, "done", second * 1_000)
    assert writes[:11] == [0, 1, 2, 3, 5, 9, 17, 33, 65, 125, 185]


def test_what_was_undone_a_while_ago_is_written_again_at_once() -> None:
    attempts = Attempts()
    for minute in range(10):
        asked = decision(version=str(minute))
        assert sent(attempts, minute * 60_000, asked) == ["n1"]
        learn(attempts, asked, "done", minute * 60_000)


def test_another_key_of_an_object_that_was_refused_is_tried_at_once() -> None:
    attempts = Attempts()
    learn(attempts, decision(), "refused")
    other = msgspec.structs.replace(decision(), act=Annotate(annotations=(("b", "1"),)))
    assert sent(attempts, 1, other) == ["n1"]


def test_what_was_stale_is_sent_at_once_when_more_has_been_seen() -> None:
    attempts = Attempts()
    learn(attempts, decision(), "stale")
    assert sent(attempts, 999, decision()) == []
    assert sent(attempts, 999, decision(version="8")) == ["n1"]


def test_success_ends_the_waiting_and_what_nobody_asks_for_is_forgotten() -> None:
    attempts = Attempts()
    for _ in range(5):
        learn(attempts, decision(), "retry")
    assert attempts.wake_at(Instant(0)) == 16_000
    learn(attempts, decision(), "done")
    learn(attempts, decision(version="9"), "retry", 20_000)
    assert attempts.wake_at(Instant(0)) == 10_000
    assert sent(attempts, 20_999, decision(version="9")) == []
    assert attempts.wake_at(Instant(0)) == 21_000
    assert sent(attempts, 20_999, decision("n2")) == ["n2"]
    assert attempts.wake_at(Instant(0)) is None
    assert sent(attempts, 20_999, decision(version="9")) == ["n1"]


def test_what_comes_after_something_waits_with_it_and_goes_when_that_is_done() -> None:
    attempts = Attempts()
    second = decision("n2", after=("n1",))
    learn(attempts, decision(), "retry")
    assert sent(attempts, 500, decision(), second) == []
    learn(attempts, decision(), "done")
    (left,) = attempts.due((decision(), second), Instant(500))
    assert left == msgspec.structs.replace(second, after=())


def test_what_was_due_already_wakes_nobody_though_it_was_not_sent() -> None:
    attempts = Attempts()
    learn(attempts, decision(), "retry", 0)
    learn(attempts, decision("n2"), "retry", 30_000)
    assert attempts.wake_at(Instant(500)) == 1_000
    assert attempts.wake_at(Instant(1_000)) == 31_000
    assert attempts.wake_at(Instant(31_000)) is None


def test_an_hour_that_is_set_back_puts_nothing_off() -> None:
    attempts, year_ms = Attempts(), 365 * 24 * 3_600_000
    learn(attempts, decision(), "done", year_ms)
    learn(attempts, decision("n2"), "refused", year_ms)
    assert sent(attempts, 0, decision(), decision("n2")) == ["n1", "n2"]
