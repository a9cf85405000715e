"""Leader election: the next step of a candidate, given the Lease as read and its own monotonic time.

Theory of operation. A candidate takes a free Lease; the API server lets only one candidate succeed, because each
write names the resourceVersion that it replaces. The holder renews the Lease every `retry`, and may act until
`renew` after the time just before such a write was sent. Another candidate takes the Lease over if it sees the same
record for `lease` by its own clock. The duration in a record counts only up to the maximum that a candidate may use.
A write takes effect after it was sent and is seen after it took effect, so the holder stops at least `lease - renew`
before a takeover, regardless of clock offsets: only clock rates must agree, and no two candidates act at the same
time. A write without an answer counts as failed; the next read shows whether it succeeded.

A term lasts from taking the Lease until it first expires. An expired term stays ended, even if the Lease is still
ours, because a plan made in it may be old. Times in a record are for people and have no effect.
"""

from typing import NewType

import msgspec

from reconciler.model.cluster.metadata import LeaseSpec

Monotonic = NewType("Monotonic", int)  # milliseconds of a monotonic clock of one process


_MOST_TRANSITIONS = 2**31 - 1  # the API server refuses a Lease with more
LONGEST_LEASE_MS = 60_000  # maximum for a candidate


class LeaseTiming(msgspec.Struct, frozen=True):
    """Timing of leader election, with the defaults of Kubernetes components."""

    lease_ms: int = 15_000
    renew_ms: int = 10_000
    retry_ms: int = 2_000


def pace_of(lease_seconds: int) -> LeaseTiming:
    """The same proportions for another lease duration."""
    lease_ms = lease_seconds * 1000
    return LeaseTiming(lease_ms, lease_ms * 2 // 3, lease_ms * 2 // 15)


class LeaseRecord(msgspec.Struct, frozen=True):
    """The Lease as read; empty if absent."""

    spec: LeaseSpec
    version: str  # resourceVersion


class CandidateState(msgspec.Struct, frozen=True):
    """State of a candidate: the last changed record, and when the change was seen."""

    me: str  # unique among all candidates, past and present
    record: LeaseRecord | None = None
    changed_at: Monotonic = Monotonic(0)
    leads_until: Monotonic | None = None  # None: no term


class Claim(msgspec.Struct, frozen=True):
    """A write that is valid only if the Lease has not changed since the read."""

    spec: LeaseSpec
    after: LeaseRecord | None  # None: create the Lease


def observe_record(candidate_state: CandidateState, record: LeaseRecord | None, now: Monotonic) -> CandidateState:
    """Updates the state after a read, with `now` after the answer. A changed record counts from now; a record of
    another holder ends our term."""
    if record != candidate_state.record:
        candidate_state = msgspec.structs.replace(candidate_state, record=record, changed_at=now)
    if candidate_state.leads_until is not None and not (
        _is_mine(candidate_state) and now < candidate_state.leads_until
    ):
        return msgspec.structs.replace(candidate_state, leads_until=None)
    return candidate_state


def claim(candidate_state: CandidateState, now: Monotonic, pace: LeaseTiming) -> Claim | None:
    """The next write, if any; the writer fills in its times."""
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
    """How long an unchanged record is trusted. The holder may use a longer lease than ours, but at most the maximum
    that `run` allows: otherwise anyone with write access to the Lease could prevent leadership for years."""
    return min(max(pace.lease_ms, spec.lease_duration_seconds * 1000), max(pace.lease_ms, LONGEST_LEASE_MS))


def is_led(candidate_state: CandidateState, now: Monotonic, pace: LeaseTiming) -> bool:
    """Whether there is a leader, as far as this candidate knows: itself, or a holder whose record changed within the
    renewal time. A record that is still trusted, but was not renewed within our own lease duration, does not count."""
    if candidate_state.leads_until is not None and now < candidate_state.leads_until:
        return True
    record = candidate_state.record
    if record is None or not record.spec.holder_identity or _is_mine(candidate_state):
        return False
    return now < candidate_state.changed_at + pace.lease_ms


def written(
    candidate_state: CandidateState, record: LeaseRecord, sent_at: Monotonic, answered_at: Monotonic, pace: LeaseTiming
) -> CandidateState:
    """Continues the term after a claim that took effect, or begins one.

    A term that expired before the answer has ended, and no new one begins at once.
    """
    ran_out = candidate_state.leads_until is not None and answered_at >= candidate_state.leads_until
    until = Monotonic(sent_at + pace.renew_ms)
    is_leading = not ran_out and answered_at < until
    leads_until = until if is_leading else None
    return msgspec.structs.replace(candidate_state, record=record, changed_at=answered_at, leads_until=leads_until)


def release(candidate_state: CandidateState) -> Claim | None:
    """The write that releases the Lease, so that the next leader need not wait; None if the Lease is not ours."""
    record = candidate_state.record
    if record is None or not _is_mine(candidate_state):
        return None
    return Claim(LeaseSpec("", 1, "", "", record.spec.lease_transitions), record)


def _is_mine(candidate_state: CandidateState) -> bool:
    return candidate_state.record is not None and candidate_state.record.spec.holder_identity == candidate_state.me


def _spec(me: str, transitions: int, pace: LeaseTiming) -> LeaseSpec:
    return LeaseSpec(me, pace.lease_ms // 1000, lease_transitions=min(transitions, _MOST_TRANSITIONS))
