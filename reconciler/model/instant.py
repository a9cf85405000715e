"""Instants: unix milliseconds, and their text formats.

Every parsed instant, and every sum that `later` computes, is clamped to the range that can be formatted, because
objects of others may contain any time and any duration.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

Instant = NewType("Instant", int)  # unix milliseconds

# Years 1 and 9999, the limits of the text format.
EARLIEST, LATEST = Instant(-62_135_596_800_000), Instant(253_402_300_799_000)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_DIGITS = 11  # of unix seconds: until the year 5138
_LONGEST = 64  # characters of a timestamp: 2026-11-02T08:00:00.123456+01:00 has 32
_LONGEST_TEXT = 40  # characters of an invalid time shown in a message


@lru_cache(maxsize=65_536)
def instant(text: str) -> Instant:
    """Parses 2026-11-02T08:00:00Z, also with a fraction or another offset. Raises ValueError with a message."""
    try:
        moment = datetime.fromisoformat(text) if len(text) <= _LONGEST and text.isascii() else None
    except ValueError:
        moment = None
    if moment is None:
        sentence = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
        raise ValueError(f'expected a time such as 2026-11-02T08:00:00Z, got "{sentence}"')
    if moment.tzinfo is None:
        raise ValueError(f'"{text}" has no time zone; write 2026-11-02T08:00:00Z')
    since = moment - _EPOCH
    whole = (since.days * 86_400 + since.seconds) * 1_000
    return bounded(whole + round(since.microseconds / 1_000))


def bounded(milliseconds: int) -> Instant:
    """The nearest instant that can be formatted."""
    return Instant(min(max(milliseconds, EARLIEST), LATEST))


def later(moment: Instant, milliseconds: int) -> Instant:
    """The instant that much later, or earlier if negative; clamped to the range that can be formatted."""
    return bounded(moment + milliseconds)


def moment(text: str) -> Instant | None:
    """Like `instant`, for untrusted text; None if the text is not a time."""
    try:
        return instant(text) if text else None
    except ValueError:
        return None


def unix_seconds(text: str) -> Instant | None:
    """Parses 1793606400; None if the text is not a time."""
    is_time = len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit()
    return Instant(int(text) * 1_000) if is_time else None


def utc(moment: Instant) -> datetime:
    """The instant as a datetime in UTC."""
    return datetime.fromtimestamp(bounded(moment) / 1_000, UTC)


@lru_cache(maxsize=1_024)
def timestamp(moment: Instant) -> str:
    """2026-11-02T08:00:00Z; with milliseconds if there are any.

    Clamped to the range that can be formatted, since durations are unbounded.
    """
    seconds, milliseconds = divmod(bounded(moment), 1000)
    minutes, second = divmod(seconds, 60)
    fraction = f".{milliseconds:03}" if milliseconds else ""
    return f"{_minute(minutes)}:{second:02}{fraction}Z"


@lru_cache(maxsize=64)
def _minute(minutes: int) -> str:
    """The minute in text form, cached: successive instants are often in the same minute."""
    return datetime.fromtimestamp(minutes * 60, UTC).isoformat(timespec="minutes").removesuffix("+00:00")


# --- Instants and durations in messages.

_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def span(seconds: int) -> str:
    """40 s, 3 min, 2 h, 5 d: in the largest unit with at least two, else in the smallest."""
    length, unit = next((each for each in _SPANS if seconds >= 2 * each[0]), _SPANS[-1])
    return f"{seconds // length} {unit}"


def clock(moment: Instant, now: Instant) -> str:
    """14:52Z; with the date if not today."""
    written = timestamp(Instant(moment - moment % 60_000))
    day, time = written[:10], f"{written[11:16]}Z"
    return time if timestamp(now)[:10] == day else f"{day} {time}"


def format_moment(then: Instant, now: Instant) -> str:
    """at 14:52Z (in 11 min)."""
    left = (then - now) // 1_000
    return f"at {clock(then, now)} (in {span(left)})" if left > 0 else f"at {clock(then, now)}"
