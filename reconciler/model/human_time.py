"""Moments and lengths of time as people say them."""

from reconciler.model.instant import Instant, timestamp

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


def moment(then: Instant, now: Instant) -> str:
    """at 14:52Z (in 11 min)."""
    left = (then - now) // 1_000
    return f"at {clock(then, now)} (in {span(left)})" if left > 0 else f"at {clock(then, now)}"
