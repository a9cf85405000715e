"""Moments: unix milliseconds, and the ways they are written.

Every moment that is read lies between the first and the last that can be written, and so does the sum of a moment and a
length of time that `later` makes: others may write any time and any length.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

Instant = NewType("Instant", int)  # unix milliseconds

# Of the years 1 and 9999: there is no writing others.
EARLIEST, LATEST = Instant(-62_135_596_800_000), Instant(253_402_300_799_000)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_DIGITS = 11  # of unix seconds: until the year 5138
_LONGEST = 64  # characters of a time: 2026-11-02T08:00:00.123456+01:00 has 32
_LONGEST_TEXT = 40  # characters of one that is no time, in a message


@lru_cache(maxsize=65_536)
def instant(text: str) -> Instant:
    """Reads 2026-11-02T08:00:00Z, or the same with a fraction or another offset. Raises ValueError with a sentence."""
    try:
        moment = datetime.fromisoformat(text) if len(text) <= _LONGEST and text.isascii() else None
    except ValueError:
        moment = None
    if moment is None:
        sentence = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
        raise ValueError(f'expected a time such as 2026-11-02T08:00:00Z, got "{sentence}"')
    if moment.tzinfo is None:
        raise ValueError(f'"{text}" names no time zone; write 2026-11-02T08:00:00Z')
    since = moment - _EPOCH
    whole = (since.days * 86_400 + since.seconds) * 1_000
    return bounded(whole + round(since.microseconds / 1_000))


def bounded(milliseconds: int) -> Instant:
    """The nearest moment that can be written."""
    return Instant(min(max(milliseconds, EARLIEST), LATEST))


def later(moment: Instant, milliseconds: int) -> Instant:
    """The moment so much later, or earlier; at most the last, at least the first that can be written."""
    return bounded(moment + milliseconds)


def moment(text: str) -> Instant | None:
    """The same as `instant` of what others write; None where it is no time."""
    try:
        return instant(text) if text else None
    except ValueError:
        return None


def unix_seconds(text: str) -> Instant | None:
    """Reads 1793606400; None where that is no time."""
    is_time = len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit()
    return Instant(int(text) * 1_000) if is_time else None


def utc(moment: Instant) -> datetime:
    """As a calendar has it."""
    return datetime.fromtimestamp(bounded(moment) / 1_000, UTC)


@lru_cache(maxsize=1_024)
def timestamp(moment: Instant) -> str:
    """2026-11-02T08:00:00Z; with milliseconds where there are any. What is further off is the first or the last moment
    that can be written: people may ask for any length of time."""
    seconds, milliseconds = divmod(bounded(moment), 1000)
    minutes, second = divmod(seconds, 60)
    fraction = f".{milliseconds:03}" if milliseconds else ""
    return f"{_minute(minutes)}:{second:02}{fraction}Z"


@lru_cache(maxsize=64)
def _minute(minutes: int) -> str:
    """As people write it. Moments come one after the other, and many of them are of the same minute."""
    return datetime.fromtimestamp(minutes * 60, UTC).isoformat(timespec="minutes").removesuffix("+00:00")


# --- Moments and lengths of time as people say them.

_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def span(seconds: int) -> str:
    """40 s, 3 min, 2 h, 5 d: in the largest unit of which there are two, or else the smallest."""
    length, unit = next((each for each in _SPANS if seconds >= 2 * each[0]), _SPANS[-1])
    return f"{seconds // length} {unit}"


def clock(moment: Instant, now: Instant) -> str:
    """14:52Z; on another day with its date."""
    written = timestamp(Instant(moment - moment % 60_000))
    day, time = written[:10], f"{written[11:16]}Z"
    return time if timestamp(now)[:10] == day else f"{day} {time}"


def format_moment(then: Instant, now: Instant) -> str:
    """at 14:52Z (in 11 min)."""
    left = (then - now) // 1_000
    return f"at {clock(then, now)} (in {span(left)})" if left > 0 else f"at {clock(then, now)}"
