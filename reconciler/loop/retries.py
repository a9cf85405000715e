"""Owner of what was tried lately, so that nothing is written again before the cluster could show that it was done.

What took effect is not sent again while a plan asks for the very same write, with the same presumptions: such a plan
was made from a cluster seen before it. What failed is asked for again, at longer and longer intervals, also when what
it presumes or the time that it writes has moved on: in a busy cluster we would else knock at a closed door many times a
second. What the API server refuses outright, as without rights or by an admission policy, is tried every ten minutes at
last. What takes effect again and again, because somebody undoes it each time, waits longer each time as well: whoever
owns an object, a pod say, could else have us write without end.

The hour may be set back: nothing is put off for longer than it would have been by the right one.
"""

from collections.abc import Sequence

import msgspec

from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Action, Annotate, Decision, Evict, Hold, Outcome, Preconditions, Ref, Taint

OBSERVED_WITHIN_MS = 10_000  # what was written is seen by then, or else something undid it
FIRST_RETRY_MS = 1_000
LONGEST_RETRY_MS = 60_000
LONGEST_REFUSED_MS = 600_000
UNDONE_WITHIN_MS = 60_000  # the same write again within this time was undone by somebody
UNDONE_OFTEN = 3  # so often in a row it is written again at once

_Key = tuple[Ref, Action]


class _FailureCount(msgspec.Struct, frozen=True):
    """How often in a row it came to nothing, and when it may be sent again."""

    failures: int
    again_at: Instant


class _WriteCount(msgspec.Struct, frozen=True):
    """How often in a row it took effect and was asked for again soon, when the last time, and when it may be sent
    again."""

    times: int
    at: Instant
    again_at: Instant


class Attempts:
    """By subject and action; what is not asked for any more is forgotten."""

    def __init__(self) -> None:
        self._done: dict[_Key, Instant] = {}  # until when it counts as on its way to be seen
        self._failed: dict[_Key, _FailureCount] = {}
        self._written: dict[_Key, _WriteCount] = {}

    def due(self, decisions: Sequence[Decision], now: Instant) -> tuple[Decision, ...]:
        """Of the actions that a plan asks for, those to be sent now; what was done already, none has to wait for."""
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
        """What came of one that was sent."""
        exact, loose_key = _key(decision), _key_without_preconditions(decision)
        if outcome.result == "done":
            self._note_written(loose_key, now)
            self._done[exact] = later(now, OBSERVED_WITHIN_MS)
            self._failed.pop(exact, None)
            self._failed.pop(loose_key, None)
            return
        # What is stale is so by what it presumed: a plan that has seen more may ask for it at once.
        key = exact if outcome.result == "stale" else loose_key
        failures = self._failed[key].failures + 1 if key in self._failed else 1
        longest_ms = LONGEST_REFUSED_MS if outcome.result == "refused" else LONGEST_RETRY_MS
        wait_ms = min(longest_ms, FIRST_RETRY_MS * 2 ** min(failures - 1, 10))
        self._failed[key] = _FailureCount(failures, later(now, wait_ms))

    def wake_at(self, after: Instant) -> Instant | None:
        """When the first of what was put off until after then may be sent. What was due by then was sent, or hangs on
        something else."""
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
    """Whether the same write now would be one that was undone."""
    return written.at <= now < max(written.at, written.again_at) + UNDONE_WITHIN_MS


def _key(decision: Decision) -> _Key:
    act = decision.act
    if isinstance(act, Hold):
        raise TypeError("a hold is never tried")
    return decision.subject, act.api_request if isinstance(act, Evict) else act


def _key_without_preconditions(decision: Decision) -> _Key:
    """Without what it presumes, and without values that may be other ones with each plan, as times are."""
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
