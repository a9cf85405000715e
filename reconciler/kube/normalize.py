"""Objects that are written otherwise than usual, set right: nulls for what is empty, numbers for quantities, JSON that
is nested deeper than any program can read it."""

import re

from reconciler.model.cluster.refusal import TOO_DEEP

_MOST_LEVELS = 200
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_IN_PLACE = f'"{TOO_DEEP}"'.encode()

# Fields that map a resource to an amount.
_AMOUNTS = frozenset({"requests", "limits", "capacity", "allocatable", "overhead", "allocatedResources"})
_COUNT = "count"  # no resource: how many volumes are allocatable to a driver, which is a number


def without_nulls(value: object) -> object:
    """To Go a null, an empty list and nothing are the same."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value if each is not None]
    return value


def loosened(value: object) -> object:
    """Without nulls, and every amount as text."""
    return _amounts_as_text(without_nulls(value))


def _amounts_as_text(value: object) -> object:
    if isinstance(value, list):
        return [_amounts_as_text(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: amount if name == _COUNT else _text(amount) for name, amount in each.items()}
        if key in _AMOUNTS and isinstance(each, dict)
        else _amounts_as_text(each)
        for key, each in value.items()
    }


def _text(amount: object) -> object:
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return str(amount) if is_number else amount


def shallow(raw: bytes) -> bytes:
    """The same JSON, with TOO_DEEP in place of whatever is nested too deeply to be read; without recursion."""
    parts: list[bytes] = []
    level, copied, cut_from = 0, 0, 0
    for token in _TOKEN.finditer(raw):
        sign = raw[token.start()]
        if sign in b"[{":
            level += 1
            if level == _MOST_LEVELS:
                cut_from = token.start()
        elif sign in b"]}":
            if level == _MOST_LEVELS:
                parts += [raw[copied:cut_from], _IN_PLACE]
                copied = token.end()
            level -= 1
    return b"".join((*parts, raw[copied:])) if parts else raw
