"""Evaluates the rules of a schema, written in the Common Expression Language (CEL) of the API server.

Patterns are evaluated by CEL as well: its regular expressions match Go's in all that matters here and take linear time
on any text; Python's do not.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import cel

# Functions and variables that the CEL library and reconciler know. A rule that uses any other identifier cannot be
# evaluated here. Operators are not identifiers.
_FUNCTIONS = frozenset(
    {"bool", "contains", "double", "duration", "endsWith", "find", "int", "matches", "size", "startsWith", "string"}
    | {"timestamp", "uint"}
)
# Results for longer texts are not cached, so that the cache stays bounded.
_KEPT_LENGTH = 200
_LOOKED_AT = 500
_MATCH = "text.matches(pattern)"


class CelRule(msgspec.Struct, frozen=True):
    """An expression over `self` that must be true."""

    program: "cel.Program"
    message: str


def compiled(validations: Sequence[dict[str, Any]]) -> tuple[tuple[CelRule, ...], tuple[str, ...]]:
    """The compiled rules, and the messages of the rules that cannot be evaluated here.

    Rules over `oldSelf` are in neither list: they constrain updates.
    """
    rules, unknown = [], []
    for validation in validations:
        text = validation["rule"]
        message = validation.get("message") or f"the rule {text} does not hold"
        try:
            program = _program(text)
        except ValueError:
            unknown.append(message)
            continue
        if "oldSelf" in program.variables():
            continue
        if any(name.isidentifier() and name not in _FUNCTIONS for name in program.functions()):
            unknown.append(message)
        else:
            rules.append(CelRule(program, message))
    return tuple(rules), tuple(unknown)


class Breach(msgspec.Struct, frozen=True):
    """A violated rule, and the key or index of the first item that violates the rule by itself, if any."""

    message: str
    item: tuple[str | int, ...] = ()


def broken(rules: Sequence[CelRule], value: Any) -> list[Breach]:
    """The rules that the value violates."""
    context = _context(value)
    breaches = []
    for rule in rules:
        if text := _violation_text(rule, context):
            items = (name for name, alone in _one_by_one(value) if _breaks(rule, alone))
            breaches.append(Breach(text, tuple(islice(items, 1))))
    return breaches


def _violation_text(rule: CelRule, context: "cel.Context") -> str:
    """The message of the violated rule; empty if the rule holds."""
    try:
        holds = rule.program.execute(context)
    except Exception as error:  # noqa: BLE001  each kind of failure is another class; to the API server all are one
        return f"{rule.message} (the rule cannot be evaluated: {error})"
    return "" if holds is True else rule.message


def _breaks(rule: CelRule, alone: Any) -> bool:
    """Whether an item alone violates the rule.

    A map entry alone may lack fields that the rule reads; that is no violation.
    """
    text = _violation_text(rule, _context(alone))
    return text == rule.message or (bool(text) and isinstance(alone, list))


def _one_by_one(value: Any) -> Iterator[tuple[str | int, Any]]:
    """A list or map reduced to each single item. Of a very large collection, only the first items."""
    if isinstance(value, list):
        yield from ((number, [item]) for number, item in enumerate(value[:_LOOKED_AT]))
    elif isinstance(value, dict):
        yield from ((key, {key: item}) for key, item in islice(value.items(), _LOOKED_AT))


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text. An invalid pattern matches every text."""
    return _matches(pattern, text) if len(text) <= _KEPT_LENGTH else _matches.__wrapped__(pattern, text)


def _context(value: Any) -> "cel.Context":
    import cel  # noqa: PLC0415  a hundredth of a second, which commands without manifests do not pay

    return cel.Context({"self": value}, {"find": _find})


@functools.lru_cache(maxsize=4096)
def _matches(pattern: str, text: str) -> bool:
    try:
        return bool(_program(_MATCH).execute({"text": text, "pattern": pattern}))
    except (ValueError, RuntimeError):
        return True


@functools.lru_cache(maxsize=512)
def _program(text: str) -> "cel.Program":
    import cel  # noqa: PLC0415

    return cel.compile(text)


def _find(text: str, pattern: str) -> str:
    """The API server's `find` function: the first match in the text, or an empty string."""
    match = re.search(pattern, text)
    return match[0] if match else ""
