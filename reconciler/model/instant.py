"""Moments: unix milliseconds, and the ways they are written."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import NewType

Instant = NewType("Instant", int)  # unix milliseconds

_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_000  # of the years 1 and 9999: there is no writing others
_MOST_DIGITS = 11  # of unix seconds: until the year 5138


@lru_cache(maxsize=65_536)
def instant(text: str) -> Instant:
    """Reads 2026-11-02T08:00:00Z, or the same with a fraction or another offset. Raises ValueError with a sentence."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'expected a time such as 2026-11-02T08:00:00Z, got "{text}"') from None
    if moment.tzinfo is None:
        raise ValueError(f'"{text}" names no time zone; write 2026-11-02T08:00:00Z')
    return Instant(round(moment.timestamp() * 1000))


def moment(text: str) -> Instant | None:
    """The same of what others write; None where it is no time."""
    try:
        return instant(text) if text else None
    except ValueError:
        return None


def unix_seconds(text: str) -> Instant | None:
    """Reads 1793606400; None where that is no time."""
    is_time = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return Instant(int(text) * 1_000) if is_time else None


@lru_cache(maxsize=1_024)
def timestamp(moment: Instant) -> str:
    """2026-11-02T08:00:00Z; with milliseconds where there are any. What is further off is the first or the last moment
    that can be written: people may ask for any length of time."""
    seconds, milliseconds = divmod(min(max(moment, _FIRST), _LAST), 1000)
    minutes, second = divmod(seconds, 60)
    fraction = f".{milliseconds:03}" if milliseconds else ""
    return f"{_minute(minutes)}:{second:02}{fraction}Z"


@lru_cache(maxsize=64)
def _minute(minutes: int) -> str:
    """As people write it. Moments come one after the other, and many of them are of the same minute."""
    return datetime.fromtimestamp(minutes * 60, UTC).isoformat(timespec="minutes").removesuffix("+00:00")
