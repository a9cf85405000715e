"""How numbers, money and moments are written for people."""

from collections.abc import Sequence

from reconciler.model.human_time import span
from reconciler.model.instant import Instant


def per_mille(part: int, whole: int) -> int:
    """Rounded to the nearest; of nothing it is nothing."""
    return (2_000 * part + whole) // (2 * whole) if whole else 0


def percent(per_mille: int) -> str:
    """66.7 %."""
    return f"{per_mille // 10}.{per_mille % 10} %"


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


def age(then: Instant, now: Instant) -> str:
    """40 s ago; what is not past, clocks being what they are, is now."""
    return f"{span((now - then) // 1_000)} ago" if now - then >= 1_000 else "just now"


def short_digest(digest: str) -> str:
    """sha256:7f3a91c2, enough to compare two by eye."""
    algorithm, _, digits = digest.rpartition(":")
    return f"{algorithm}:{digits[:8]}"
