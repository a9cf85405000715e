"""Who leads: a table of what a candidate does, and that no two of them ever act at the same time."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.cluster.metadata import LeaseSpec
from reconciler.protocol.leadership import (
    CandidateState,
    Claim,
    LeaseRecord,
    LeaseTiming,
    Monotonic,
    claim,
    is_led,
    observe_record,
    pace_of,
    release,
    written,
)

PACE = LeaseTiming()
ME, OTHER = "me", "other"


def record(holder: str, version: str = "1", duration: int = 15, transitions: int = 3) -> LeaseRecord:
    return LeaseRecord(LeaseSpec(holder, duration, acquire_time="then", lease_transitions=transitions), version)


def at(milliseconds: int) -> Monotonic:
    return Monotonic(milliseconds)


class Case(NamedTuple):
    found: LeaseRecord | None
    seen_at: int
    now: int
    holder: str | None  # of what is written; None where nothing is
    transitions: int = 0


CASES = {
    "where there is no Lease it is made": Case(None, 0, 0, ME, 0),
    "one that nobody holds is taken at once": Case(record("", duration=1), 0, 0, ME, 4),
    "one's own is renewed": Case(record(ME), 0, 0, ME, 3),
    "another's is left alone": Case(record(OTHER), 0, 14_999, None),
    "another's that has not moved for its duration is taken": Case(record(OTHER), 0, 15_000, ME, 4),
    "who goes by a longer one is given it": Case(record(OTHER, duration=60), 0, 59_999, None),
    "and no longer than that": Case(record(OTHER, duration=60), 0, 60_000, ME, 4),
    "who goes by a shorter one is given ours": Case(record(OTHER, duration=1), 0, 14_999, None),
    "of a lease of 68 years no more is believed than a candidate may go by": Case(
        record(OTHER, duration=2**31 - 1), 0, 59_999, None
    ),
    "and then it is taken": Case(record(OTHER, duration=2**31 - 1), 0, 60_000, ME, 4),
    "how long it was held before it was first seen says nothing": Case(record(OTHER), 50_000, 64_999, None),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_written(name: str) -> None:
    case = CASES[name]
    standing = observe_record(CandidateState(ME), case.found, at(case.seen_at))
    wanted = claim(standing, at(case.now), PACE)
    if case.holder is None:
        assert wanted is None
    else:
        assert wanted
        assert (wanted.spec.holder_identity, wanted.spec.lease_transitions) == (case.holder, case.transitions)
        assert wanted.after == case.found
        assert wanted.spec.acquire_time == ("then" if case.found and case.found.spec.holder_identity == ME else "")


def test_a_lease_that_its_holder_does_not_renew_tells_of_nobody_who_leads() -> None:
    ghost = observe_record(CandidateState(ME), record("ghost", duration=2**31 - 1), at(0))
    assert is_led(ghost, at(14_999), PACE)
    assert not is_led(ghost, at(15_000), PACE)
    renewed = observe_record(ghost, record("ghost", "2", duration=2**31 - 1), at(15_000))
    assert is_led(renewed, at(29_999), PACE)
    assert not is_led(observe_record(CandidateState(ME), record(""), at(0)), at(0), PACE)
    assert not is_led(observe_record(CandidateState(ME), None, at(0)), at(0), PACE)
    assert is_led(written(CandidateState(ME), record(ME), at(0), at(500), PACE), at(9_999), PACE)


def test_a_term_lasts_from_before_the_write_and_is_prolonged_by_the_next() -> None:
    first = written(CandidateState(ME), record(ME), at(1_000), at(1_500), PACE)
    assert first.leads_until == 11_000
    second = written(first, record(ME, "2"), at(3_000), at(3_500), PACE)
    assert second.leads_until == 13_000


def test_an_answer_that_comes_after_the_end_prolongs_nothing() -> None:
    first = written(CandidateState(ME), record(ME), at(1_000), at(1_500), PACE)
    assert written(first, record(ME, "2"), at(10_000), at(11_000), PACE).leads_until is None
    assert written(CandidateState(ME), record(ME), at(1_000), at(11_000), PACE).leads_until is None


def test_a_term_ends_when_another_holds_the_lease_or_it_is_gone_or_time_is_up() -> None:
    leads = written(CandidateState(ME), record(ME), at(0), at(0), PACE)
    assert observe_record(leads, record(ME), at(9_999)).leads_until == 10_000
    for found, now in ((record(OTHER, "2"), 1), (None, 1), (record(ME), 10_000)):
        assert observe_record(leads, found, at(now)).leads_until is None


def test_another_lease_has_the_same_proportions() -> None:
    assert pace_of(15) == PACE
    assert pace_of(3) == LeaseTiming(3_000, 2_000, 400)


def test_only_one_s_own_is_given_up() -> None:
    mine = observe_record(CandidateState(ME), record(ME), at(0))
    given_up = release(mine)
    assert given_up == Claim(LeaseSpec("", 1, lease_transitions=3), record(ME))
    assert release(observe_record(CandidateState(ME), record(OTHER), at(0))) is None
    assert release(CandidateState(ME)) is None


class Candidate:
    """A process with a clock of its own, which may be anywhere in a step when it is paused."""

    def __init__(self, name: str, offset_ms: int, store: "Store") -> None:
        self.standing = CandidateState(name)
        self.offset_ms, self.store = offset_ms, store
        self.steps: list[Callable[[int, bool], None]] = []
        self.read: LeaseRecord | None = None
        self.claimed: Claim | None = None
        self.sent_at = at(0)
        self.answer: LeaseRecord | None = None

    def clock(self, now: int) -> Monotonic:
        return at(now + self.offset_ms)

    def holds(self, now: int) -> bool:
        until = self.standing.leads_until
        return until is not None and self.clock(now) < until

    def go_on(self, now: int, is_lost: bool) -> None:
        """One part of a step: read; take note and decide; write; take note of the answer, unless it is lost."""
        if not self.steps:
            self.steps = [self._read, self._decide, self._write, self._note]
        self.steps.pop(0)(now, is_lost)

    def finish(self, now: int) -> None:
        """To the end of the step that it is in, or all of the next."""
        self.go_on(now, False)
        while self.steps:
            self.go_on(now, False)

    def restart(self) -> None:
        """Killed and started again, under another name."""
        self.standing = CandidateState(f"{self.standing.me}'")
        self.steps = []

    def _read(self, now: int, is_lost: bool) -> None:
        self.read = self.store.record
        if is_lost:
            self.steps = []

    def _decide(self, now: int, is_lost: bool) -> None:
        self.standing = observe_record(self.standing, self.read, self.clock(now))
        self.claimed, self.sent_at = claim(self.standing, self.clock(now), PACE), self.clock(now)
        if self.claimed is None:
            self.steps = []

    def _write(self, now: int, is_lost: bool) -> None:
        assert self.claimed
        self.answer = self.store.write(self.claimed)
        if is_lost or self.answer is None:
            self.steps = []

    def _note(self, now: int, is_lost: bool) -> None:
        assert self.answer
        self.standing = written(self.standing, self.answer, self.sent_at, self.clock(now), PACE)


class Store:
    """The API server's part: a write names the version that it follows."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.version = 0

    def write(self, claimed: Claim) -> LeaseRecord | None:
        if claimed.after != self.record:
            return None
        self.version += 1
        self.record = LeaseRecord(claimed.spec, str(self.version))
        return self.record


MOVES = st.tuples(
    st.integers(0, 1),  # who
    st.sampled_from([0, 1_000, 8_000, 9_999, 14_999, 15_000]),  # after how long
    st.sampled_from(["a whole step", "a whole step", "one part", "lost", "restart"]),
)


@settings(max_examples=600)
@given(st.lists(MOVES, min_size=20, max_size=40), st.lists(st.integers(0, 10**9), min_size=2, max_size=2))
def test_no_two_hold_at_the_same_time_wherever_they_are_paused(
    moves: list[tuple[int, int, str]], offsets: list[int]
) -> None:
    store, now = Store(), 0
    candidates = [Candidate(str(number), offset, store) for number, offset in enumerate(offsets)]
    for who, elapsed_ms, what in moves:
        now += elapsed_ms
        if what == "restart":
            candidates[who].restart()
        elif what == "a whole step":
            candidates[who].finish(now)
        else:
            candidates[who].go_on(now, what == "lost")
        assert sum(each.holds(now) for each in candidates) <= 1


def test_who_is_left_alone_leads_in_the_end() -> None:
    store = Store()
    first, second = Candidate("first", 0, store), Candidate("second", 7_000, store)
    for _ in range(4):
        first.go_on(0, False)
    assert first.holds(0)
    led_at = next(now for now in range(0, 60_000, 500) if _led(second, now))
    assert 15_000 <= led_at <= 18_000
    assert not first.holds(led_at)


def _led(candidate: Candidate, now: int) -> bool:
    candidate.go_on(now, False)
    return candidate.holds(now)
