"""Owner of recent writes, to avoid repeating a write before the cluster can show its effect.

A successful write is not repeated while a plan requests the same write with the same preconditions: such a plan is
based on a snapshot from before the write. A failed write is retried with increasing intervals, even if its
preconditions or a time in it changed; otherwise a busy cluster would cause many failing requests per second. Writes
that the API server refuses, for example for missing rights or by an admission policy, are retried every ten minutes
in the end. Intervals also increase for a write that succeeds repeatedly because somebody undoes it each time;
otherwise the owner of an object, such as a pod, could cause endless writes.

The clock may be set back: no delay becomes longer than with the correct time.
"""

from collections.abc import Sequence

import msgspec

from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Action, Annotate, Decision, Evict, Hold, Outcome, Preconditions, Ref, Taint

OBSERVED_WITHIN_MS = 10_000  # a write is visible within this time, or something has undone it
FIRST_RETRY_MS = 1_000
LONGEST_RETRY_MS = 60_000
LONGEST_REFUSED_MS = 600_000
UNDONE_WITHIN_MS = 60_000  # the same write again within this time was undone by somebody
UNDONE_OFTEN = 3  # consecutive times that a write is repeated without delay

_Key = tuple[Ref, Action]


class _FailureCount(msgspec.Struct, frozen=True):
    """Number of consecutive failures, and when the write may be sent again."""

    failures: int
    again_at: Instant


class _WriteCount(msgspec.Struct, frozen=True):
    """Number of consecutive repeated successes, time of the last, and when the write may be sent again."""

    times: int
    at: Instant
    again_at: Instant


class Attempts:
    """Attempts by subject and action; those that are no longer requested are dropped."""

    def __init__(self) -> None:
        self._done: dict[_Key, Instant] = {}  # until when the write may not be visible yet
        self._failed: dict[_Key, _FailureCount] = {}
        self._written: dict[_Key, _WriteCount] = {}

    def due(self, decisions: Sequence[Decision], now: Instant) -> tuple[Decision, ...]:
        """The requested actions to send now; completed ones do not block others."""
        asked = [
            (each, _key(each), _key_without_preconditions(each)) for each in decisions if not isinstance(each.act, Hold)
        ]
        keys = {key for _, exact, loose_key in asked for key in (exact, loose_key)}
        self._done = {
            key: until for key, until in self._done.items() if key in keys and now < until <= now + OBSERVED_WITHIN_MS
        }
        self._failed = {key: tried for key, tried in self._failed.items() if key in keys}
        self._written = {key: each for key, each in self._written.items() if _is_recent(each, now)}
        waiting = {each.subject for each, exact, loose_key in asked if self._waits(exact, loose_key, now)}
        done = {each.subject for each, exact, _ in asked if exact in self._done}
        return tuple(
            msgspec.structs.replace(each, after=tuple(first for first in each.after if first not in done))
            for each, _, _ in asked
            if each.subject not in done | waiting and not waiting & set(each.after)
        )

    def learn(self, decision: Decision, outcome: Outcome, now: Instant) -> None:
        """Records the outcome of an action that was sent."""
        exact, loose_key = _key(decision), _key_without_preconditions(decision)
        if outcome.result == "done":
            self._note_written(loose_key, now)
            self._done[exact] = later(now, OBSERVED_WITHIN_MS)
            self._failed.pop(exact, None)
            self._failed.pop(loose_key, None)
            return
        # A stale write failed because of its preconditions: a plan from a newer snapshot may request it at once.
        key = exact if outcome.result == "stale" else loose_key
        failures = self._failed[key].failures + 1 if key in self._failed else 1
        longest_ms = LONGEST_REFUSED_MS if outcome.result == "refused" else LONGEST_RETRY_MS
        wait_ms = min(longest_ms, FIRST_RETRY_MS * 2 ** min(failures - 1, 10))
        self._failed[key] = _FailureCount(failures, later(now, wait_ms))

    def wake_at(self, after: Instant) -> Instant | None:
        """When the first action delayed beyond `after` may be sent. Earlier ones were sent, or depend on others."""
        failed = (each.again_at for each in self._failed.values())
        moments = (*self._done.values(), *failed, *(each.again_at for each in self._written.values()))
        return min((each for each in moments if each > after), default=None)

    def _waits(self, exact: _Key, loose_key: _Key, now: Instant) -> bool:
        tried = [self._failed[key].again_at for key in (exact, loose_key) if key in self._failed]
        if loose_key in self._written:
            tried.append(self._written[loose_key].again_at)
        return any(now < each <= now + LONGEST_REFUSED_MS for each in tried)

    def _note_written(self, loose_key: _Key, now: Instant) -> None:
        before = self._written.get(loose_key)
        times = before.times + 1 if before is not None and _is_recent(before, now) else 1
        again_ms = FIRST_RETRY_MS * 2 ** min(times - UNDONE_OFTEN, 10) if times > UNDONE_OFTEN else 0
        self._written[loose_key] = _WriteCount(times, now, later(now, min(LONGEST_RETRY_MS, again_ms)))


def _is_recent(written: _WriteCount, now: Instant) -> bool:
    """Whether the same write now would mean that the last one was undone."""
    return written.at <= now < max(written.at, written.again_at) + UNDONE_WITHIN_MS


def _key(decision: Decision) -> _Key:
    act = decision.act
    if isinstance(act, Hold):
        raise TypeError("a hold is never tried")
    return decision.subject, act.api_request if isinstance(act, Evict) else act


def _key_without_preconditions(decision: Decision) -> _Key:
    """Without preconditions, and without values that may change with each plan, such as times."""
    subject, act = _key(decision)
    act = msgspec.structs.replace(act, presumes=Preconditions())
    match act:
        case Annotate(annotations=annotations):
            act = Annotate(annotations=tuple((key, None if text is None else "") for key, text in annotations))
        case Taint(value=str()):
            act = msgspec.structs.replace(act, value="")
        case Evict():
            act = Evict(grace_seconds=0)
    return subject, act
