"""Bounded parsers of texts that others write into objects. Each is total: a value, or None for what is no such value.

Quantities are read in resource_quantity.py, moments and unix seconds in instant.py, durations in
plan/karpenter/durations.py, by the same rules: ASCII digits, a limit of length, and nothing raised for any text.
"""

from typing import Annotated, TypeVar

import msgspec

T = TypeVar("T")

_MOST_DIGITS = 18
_LONGEST_JSON = 262_144  # characters: all annotations of an object together have no more

# Whole numbers as Kubernetes has them: what is larger can be neither counted in numpy nor written as JSON.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


def natural(text: str) -> int | None:
    """ASCII digits without a sign: "0", "12"."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None


def integer(text: str) -> int | None:
    """The same with a sign: "-3", "+3"."""
    found = natural(text[1:] if text[:1] in {"-", "+"} else text)
    return None if found is None else -found if text.startswith("-") else found


def json_value(text: str, type: type[T]) -> T | None:  # noqa: A002 - as msgspec calls it
    """JSON of the type, as an annotation has it."""
    if len(text) > _LONGEST_JSON:
        return None
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError):
        return None
