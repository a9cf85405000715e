"""Who leads: what one candidate does next, given the Lease as it was read and its own monotonic time.

Theory of operation. A candidate that finds the Lease free takes it; the API server lets only one of them, since each
write names the resourceVersion that it follows. Its holder writes it again every `retry`, and may act until `renew`
after the moment just before such a write was sent. Whoever else sees the same record for `lease`, by its own clock and
since it first saw it, takes it over. Of the duration in a record no more is believed than a candidate may go by. The
write took effect after it was sent and was seen after it took effect, so the holder has stopped, `lease - renew`
earlier, whatever the clocks say: only how fast they run must agree, and no two candidates act at the same time. A write
whose answer was lost is no promise; it is found out by reading again.

A term is what one candidate holds from taking the Lease until it first runs out. One that has ended stays ended, even
if the Lease is still ours, as a plan made in it may be old. Times in a record are for people; nothing hangs on them.
"""

from typing import NewType

import msgspec

from reconciler.model.cluster.metadata import LeaseSpec

Monotonic = NewType("Monotonic", int)  # milliseconds of a clock of one process that never goes back


_MOST_TRANSITIONS = 2**31 - 1  # the API server refuses a Lease with more
LONGEST_LEASE_MS = 60_000  # that a candidate may go by


class LeaseTiming(msgspec.Struct, frozen=True):
    """As Kubernetes' own components do it."""

    lease_ms: int = 15_000
    renew_ms: int = 10_000
    retry_ms: int = 2_000


def pace_of(lease_seconds: int) -> LeaseTiming:
    """The same proportions for another lease."""
    lease_ms = lease_seconds * 1000
    return LeaseTiming(lease_ms, lease_ms * 2 // 3, lease_ms * 2 // 15)


class LeaseRecord(msgspec.Struct, frozen=True):
    """The Lease as it was read; none where there is none."""

    spec: LeaseSpec
    version: str  # its resourceVersion


class CandidateState(msgspec.Struct, frozen=True):
    """What a candidate knows: the record as it was last seen to change, and since when."""

    me: str  # no other candidate, before or beside, is called so
    record: LeaseRecord | None = None
    changed_at: Monotonic = Monotonic(0)
    leads_until: Monotonic | None = None  # None: no term


class Claim(msgspec.Struct, frozen=True):
    """Write this, if the Lease is still as it was read."""

    spec: LeaseSpec
    after: LeaseRecord | None  # None: there is none, make it


def observe_record(candidate_state: CandidateState, record: LeaseRecord | None, now: Monotonic) -> CandidateState:
    """After reading, `now` being after the answer: a record that changed counts from now. What is not ours ends our
    term."""
    if record != candidate_state.record:
        candidate_state = msgspec.structs.replace(candidate_state, record=record, changed_at=now)
    if candidate_state.leads_until is not None and not (
        _is_mine(candidate_state) and now < candidate_state.leads_until
    ):
        return msgspec.structs.replace(candidate_state, leads_until=None)
    return candidate_state


def claim(candidate_state: CandidateState, now: Monotonic, pace: LeaseTiming) -> Claim | None:
    """What to write now, if anything; the times in it are for its writer to fill in."""
    record = candidate_state.record
    if record is None:
        return Claim(_spec(candidate_state.me, 0, pace), None)
    lease_spec = record.spec
    if _is_mine(candidate_state):
        renewed = _spec(candidate_state.me, lease_spec.lease_transitions, pace)
        return Claim(msgspec.structs.replace(renewed, acquire_time=lease_spec.acquire_time), record)
    if lease_spec.holder_identity and now < candidate_state.changed_at + believed_ms(lease_spec, pace):
        return None
    return Claim(_spec(candidate_state.me, lease_spec.lease_transitions + 1, pace), record)


def believed_ms(spec: LeaseSpec, pace: LeaseTiming) -> int:
    """How long a record that does not change is believed. Its holder may go by a longer lease than ours, but by none
    that `run` does not allow: whoever may write the Lease could otherwise keep everybody from leading for years."""
    return min(max(pace.lease_ms, spec.lease_duration_seconds * 1000), max(pace.lease_ms, LONGEST_LEASE_MS))


def is_led(candidate_state: CandidateState, now: Monotonic, pace: LeaseTiming) -> bool:
    """Whether somebody leads, as far as this candidate can tell: itself, or a holder whose record changed as lately as
    holders write it. A record that is believed still, and that nobody has written for our own lease, tells of nobody.
    """
    if candidate_state.leads_until is not None and now < candidate_state.leads_until:
        return True
    record = candidate_state.record
    if record is None or not record.spec.holder_identity or _is_mine(candidate_state):
        return False
    return now < candidate_state.changed_at + pace.lease_ms


class LeaseWrite(msgspec.Struct, frozen=True):
    """A claim that took effect: the record that it made, and when it was sent and answered."""

    record: LeaseRecord
    sent_at: Monotonic
    answered_at: Monotonic


def written(candidate_state: CandidateState, written: LeaseWrite, pace: LeaseTiming) -> CandidateState:
    """The term goes on, or one begins; one that had run out before the answer has ended, and none follows at once."""
    ran_out = candidate_state.leads_until is not None and written.answered_at >= candidate_state.leads_until
    until = Monotonic(written.sent_at + pace.renew_ms)
    is_leading = not ran_out and written.answered_at < until
    return msgspec.structs.replace(
        candidate_state,
        record=written.record,
        changed_at=written.answered_at,
        leads_until=until if is_leading else None,
    )


def release(candidate_state: CandidateState) -> Claim | None:
    """What to write on leaving, so that the next need not wait; None where it is not ours to give up."""
    record = candidate_state.record
    if record is None or not _is_mine(candidate_state):
        return None
    return Claim(LeaseSpec("", 1, "", "", record.spec.lease_transitions), record)


def _is_mine(candidate_state: CandidateState) -> bool:
    return candidate_state.record is not None and candidate_state.record.spec.holder_identity == candidate_state.me


def _spec(me: str, transitions: int, pace: LeaseTiming) -> LeaseSpec:
    return LeaseSpec(me, pace.lease_ms // 1000, lease_transitions=min(transitions, _MOST_TRANSITIONS))
