"""Rules and patterns of a schema, in the Common Expression Language that the API server speaks.

Patterns go through it too: its regular expressions are Go's in what matters, and take linear time whatever the text is,
which Python's do not.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import cel

# What the library and we know; a rule with anything else can't be judged here. Operators are no identifiers.
_FUNCTIONS = frozenset(
    {"bool", "contains", "double", "duration", "endsWith", "find", "int", "matches", "size", "startsWith", "string"}
    | {"timestamp", "uint"}
)
# Longer ones are matched each time, lest what is kept grows without bound.
_KEPT_LENGTH = 200
_LOOKED_AT = 500
_MATCH = "text.matches(pattern)"


class CelRule(msgspec.Struct, frozen=True):
    """An expression over `self` that must be true."""

    program: "cel.Program"
    message: str


def compiled(validations: Sequence[dict[str, Any]]) -> tuple[tuple[CelRule, ...], tuple[str, ...]]:
    """The rules among them, and the messages of those that can't be judged here.

    Rules over `oldSelf` are neither: they are about a change, and there is no change yet.
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
    """A rule that a value breaks, and the key or number of the first item that breaks it by itself, if one does."""

    message: str
    item: tuple[str | int, ...] = ()


def broken(rules: Sequence[CelRule], value: Any) -> list[Breach]:
    """The rules that the value breaks."""
    context = _context(value)
    breaches = []
    for rule in rules:
        if text := _violation_text(rule, context):
            items = (name for name, alone in _one_by_one(value) if _breaks(rule, alone))
            breaches.append(Breach(text, tuple(islice(items, 1))))
    return breaches


def _violation_text(rule: CelRule, context: "cel.Context") -> str:
    """What is wrong, if anything is."""
    try:
        holds = rule.program.execute(context)
    except Exception as error:  # noqa: BLE001  each kind of failure is another class; to the API server all are one
        return f"{rule.message} (it can't be evaluated: {error})"
    return "" if holds is True else rule.message


def _breaks(rule: CelRule, alone: Any) -> bool:
    """Of a map, an entry alone may lack what the rule asks for; that says nothing about it."""
    text = _violation_text(rule, _context(alone))
    return text == rule.message or (bool(text) and isinstance(alone, list))


def _one_by_one(value: Any) -> Iterator[tuple[str | int, Any]]:
    """A list or map with only one of its items, for each; of very many the first will do."""
    if isinstance(value, list):
        yield from ((number, [item]) for number, item in enumerate(value[:_LOOKED_AT]))
    elif isinstance(value, dict):
        yield from ((key, {key: item}) for key, item in islice(value.items(), _LOOKED_AT))


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text; a pattern that is none matches all."""
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
    """The API server's own function: the first part of the text that matches, or nothing."""
    match = re.search(pattern, text)
    return match[0] if match else ""
