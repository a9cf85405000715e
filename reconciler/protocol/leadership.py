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

from reconciler.model.cluster.lease import LeaseSpec

Monotonic = NewType("Monotonic", int)  # milliseconds of a clock of one process that never goes back


_MOST_TRANSITIONS = 2**31 - 1  # the API server refuses a Lease with more
LONGEST_LEASE_MS = 60_000  # that a candidate may go by


class Pace(msgspec.Struct, frozen=True):
    """As Kubernetes' own components do it."""

    lease_ms: int = 15_000
    renew_ms: int = 10_000
    retry_ms: int = 2_000


def pace_of(lease_seconds: int) -> Pace:
    """The same proportions for another lease."""
    lease_ms = lease_seconds * 1000
    return Pace(lease_ms, lease_ms * 2 // 3, lease_ms * 2 // 15)


class Record(msgspec.Struct, frozen=True):
    """The Lease as it was read; none where there is none."""

    spec: LeaseSpec
    version: str  # its resourceVersion


class Standing(msgspec.Struct, frozen=True):
    """What a candidate knows: the record as it was last seen to change, and since when."""

    me: str  # no other candidate, before or beside, is called so
    record: Record | None = None
    changed_at: Monotonic = Monotonic(0)
    leads_until: Monotonic | None = None  # None: no term


class Claim(msgspec.Struct, frozen=True):
    """Write this, if the Lease is still as it was read."""

    spec: LeaseSpec
    after: Record | None  # None: there is none, make it


def seen(standing: Standing, record: Record | None, now: Monotonic) -> Standing:
    """After reading, `now` being after the answer: a record that changed counts from now. What is not ours ends our
    term."""
    if record != standing.record:
        standing = msgspec.structs.replace(standing, record=record, changed_at=now)
    if standing.leads_until is not None and not (_is_mine(standing) and now < standing.leads_until):
        return msgspec.structs.replace(standing, leads_until=None)
    return standing


def claim(standing: Standing, now: Monotonic, pace: Pace) -> Claim | None:
    """What to write now, if anything; the times in it are for its writer to fill in."""
    record = standing.record
    if record is None:
        return Claim(_spec(standing.me, 0, pace), None)
    found = record.spec
    if _is_mine(standing):
        renewed = _spec(standing.me, found.lease_transitions, pace)
        return Claim(msgspec.structs.replace(renewed, acquire_time=found.acquire_time), record)
    if found.holder_identity and now < standing.changed_at + believed_ms(found, pace):
        return None
    return Claim(_spec(standing.me, found.lease_transitions + 1, pace), record)


def believed_ms(spec: LeaseSpec, pace: Pace) -> int:
    """How long a record that does not change is believed. Its holder may go by a longer lease than ours, but by none
    that `run` does not allow: whoever may write the Lease could otherwise keep everybody from leading for years."""
    return min(max(pace.lease_ms, spec.lease_duration_seconds * 1000), max(pace.lease_ms, LONGEST_LEASE_MS))


def is_led(standing: Standing, now: Monotonic, pace: Pace) -> bool:
    """Whether somebody leads, as far as this candidate can tell: itself, or a holder whose record changed as lately as
    holders write it. A record that is believed still, and that nobody has written for our own lease, tells of nobody.
    """
    if standing.leads_until is not None and now < standing.leads_until:
        return True
    record = standing.record
    if record is None or not record.spec.holder_identity or _is_mine(standing):
        return False
    return now < standing.changed_at + pace.lease_ms


class Written(msgspec.Struct, frozen=True):
    """A claim that took effect: the record that it made, and when it was sent and answered."""

    record: Record
    sent_at: Monotonic
    answered_at: Monotonic


def written(standing: Standing, written: Written, pace: Pace) -> Standing:
    """The term goes on, or one begins; one that had run out before the answer has ended, and none follows at once."""
    ran_out = standing.leads_until is not None and written.answered_at >= standing.leads_until
    until = Monotonic(written.sent_at + pace.renew_ms)
    is_leading = not ran_out and written.answered_at < until
    return msgspec.structs.replace(
        standing,
        record=written.record,
        changed_at=written.answered_at,
        leads_until=until if is_leading else None,
    )


def release(standing: Standing) -> Claim | None:
    """What to write on leaving, so that the next need not wait; None where it is not ours to give up."""
    record = standing.record
    if record is None or not _is_mine(standing):
        return None
    return Claim(LeaseSpec("", 1, "", "", record.spec.lease_transitions), record)


def _is_mine(standing: Standing) -> bool:
    return standing.record is not None and standing.record.spec.holder_identity == standing.me


def _spec(me: str, transitions: int, pace: Pace) -> LeaseSpec:
    return LeaseSpec(me, pace.lease_ms // 1000, lease_transitions=min(transitions, _MOST_TRANSITIONS))
