"""How numbers, money and moments are written for people."""

import re
from collections.abc import Sequence

from reconciler.model.instant import Instant, timestamp

_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def counted(number: int, noun: str) -> str:
    """A number and what it counts: 1 error, 2 errors."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def dollars(micro_dollars: int) -> str:
    """$1,324.20, to the cent."""
    return f"{'-' if _cents(micro_dollars) < 0 else ''}${_amount(micro_dollars)}"


def difference(micro_dollars: int) -> str:
    """What changes in a bill, without its currency: -746.64, +14.75, 0."""
    cents = _cents(micro_dollars)
    return f"{'-' if cents < 0 else '+'}{_amount(micro_dollars)}" if cents else "0"


def _cents(micro_dollars: int) -> int:
    return (micro_dollars + 5_000) // 10_000


def _amount(micro_dollars: int) -> str:
    whole, cents = divmod(abs(_cents(micro_dollars)), 100)
    return f"{whole:,}.{cents:02d}"


def span(seconds: int) -> str:
    """40 s, 3 min, 2 h, 5 d: in the largest unit of which there are two, or else the smallest."""
    length, unit = next((each for each in _SPANS if seconds >= 2 * each[0]), _SPANS[-1])
    return f"{seconds // length} {unit}"


def age(then: Instant, now: Instant) -> str:
    """40 s ago; what is not past, clocks being what they are, is now."""
    return f"{span((now - then) // 1_000)} ago" if now - then >= 1_000 else "just now"


def clock(moment: Instant, now: Instant) -> str:
    """14:52Z; on another day with its date."""
    written = timestamp(Instant(moment - moment % 60_000))
    day, time = written[:10], f"{written[11:16]}Z"
    return time if timestamp(now)[:10] == day else f"{day} {time}"


def short(revision: str) -> str:
    """A commit as people name it; anything else as it is."""
    return revision[:7] if _DIGEST.fullmatch(revision) else revision


def short_digest(digest: str) -> str:
    """sha256:7f3a91c2, enough to compare two by eye."""
    algorithm, _, digits = digest.rpartition(":")
    return f"{algorithm}:{digits[:8]}"
