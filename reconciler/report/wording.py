"""Formats of values: numbers, money and times for people, visible text, and canonical JSON."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from reconciler.model.instant import Instant, span

T = TypeVar("T")
K = TypeVar("K")


def per_mille(part: int, whole: int) -> int:
    """The share in per mille, rounded to the nearest; 0 if the whole is 0."""
    return (2_000 * part + whole) // (2 * whole) if whole else 0


def percent(per_mille: int) -> str:
    """Such as 66.7 %."""
    return f"{per_mille // 10}.{per_mille % 10} %"


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 error, 2 errors."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(words: Sequence[str]) -> str:
    """Such as a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by key, both in order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def dollars(micro_dollars: int) -> str:
    """Such as $1,324.20, to the cent."""
    return f"{'-' if _cents(micro_dollars) < 0 else ''}${_amount(micro_dollars)}"


def difference(micro_dollars: int) -> str:
    """Change of a cost without currency: -746.64, +14.75, 0."""
    cents = _cents(micro_dollars)
    return f"{'-' if cents < 0 else '+'}{_amount(micro_dollars)}" if cents else "0"


def _cents(micro_dollars: int) -> int:
    return (micro_dollars + 5_000) // 10_000


def _amount(micro_dollars: int) -> str:
    whole, cents = divmod(abs(_cents(micro_dollars)), 100)
    return f"{whole:,}.{cents:02d}"


def age(then: Instant, now: Instant) -> str:
    """Such as 40 s ago. Times in the future, due to clock differences, count as now."""
    return f"{span((now - then) // 1_000)} ago" if now - then >= 1_000 else "now"


def short_digest(digest: str) -> str:
    """Such as sha256:7f3a91c2, enough to compare two by eye."""
    algorithm, _, digits = digest.rpartition(":")
    return f"{algorithm}:{digits[:8]}"


# --- Text from policies made safe for display: invisible characters and terminal control characters are escaped.
#
# Anyone who can open a pull request can write policies. An escape sequence, a change of writing direction or a special
# space must neither act on the reader's terminal nor be invisible in a quotation. A quoted text must not act on a CI
# system that reads the output either: GitHub treats a line that begins with :: as a command, and ##[ anywhere in a
# line; Azure Pipelines ##vso[, and TeamCity ##teamcity[.

# Vowels and finals of decomposed Korean text: they join the preceding syllable.
_JOINING_JAMO = range(0x1160, 0x1200)


_COMMAND = re.compile(r"(##\w*)\[|^(\s*):(?=:)")


def visible(text: str) -> str:
    r"""The text with each character that does not print as Python writes it: \x1b, \u202e, \n; and likewise a
    character of what begins a command of continuous integration: ##\x5b, \x3a:."""
    if not text.isprintable():
        text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    return _COMMAND.sub(_inert, text) if "##" in text or "::" in text else text


def of_one_width(text: str) -> str:
    """An excerpt whose pieces are shown side by side: command prefixes are broken without a change of length."""
    return _COMMAND.sub(lambda begin: f"{begin[1]}(" if begin[1] else f"{begin[2]}.", text)


def visible_lines(text: str) -> str:
    """`visible` for a text of several lines."""
    return "\n".join(map(visible, text.split("\n")))


def _inert(begin: re.Match[str]) -> str:
    return f"{begin[1]}\\x5b" if begin[1] else f"{begin[2]}\\x3a"


def columns(text: str) -> int:
    """Display width of a visible text, in columns."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"} or ord(character) in _JOINING_JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


# --- Canonical JSON: bytes depend only on the value, and are safe for any terminal and log.

_CANONICAL_JSON_COMMAND = re.compile(r"(##\w*)\[")  # of CI systems, anywhere in a line


def canonical_json(value: object) -> str:
    """JSON with sorted keys and an indent of two; letters unescaped, non-printing characters escaped."""
    text = _CANONICAL_JSON_COMMAND.sub(r"\1\\u005b", json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
    return "".join(each if each.isprintable() or each == "\n" else _escaped(each) for each in text) + "\n"


def _escaped(character: str) -> str:
    """The character as a JSON escape; lone surrogates are not text, and strict parsers refuse them."""
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    digits = character.encode("utf-16-be").hex()
    return "".join(f"\\u{digits[at : at + 4]}" for at in range(0, len(digits), 4))
