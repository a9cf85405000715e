"""Writes a value such that it is one YAML value wherever a template puts it.

Theory of operation. What a template prints becomes JSON in one line, which YAML reads as the same value. A template may
still put it where no value belongs, such as between quotes of its own; then a quote of ours ends the template's text,
and whatever means something to YAML there would be read as structure. So those characters are written as escapes too:
between our quotes nothing is left that could begin, separate or end anything. Only ASCII comes out, so nothing can look
like a line mark either (see `line_marks`).
"""

import math
import re
from typing import Any

from jinja2 import Undefined

from reconciler.sources.rendering.child.line_marks import Rendered, marked_text

# A colon between letters or digits means nothing to YAML, and is what images and times are written with.
_ESCAPED = re.compile(r"""[^ -~]|[\\",\[\]{}#']|(?<![A-Za-z0-9]):|:(?![A-Za-z0-9])""")
_SHORT = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


_WORDS: dict[type, str] = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    list: "a list",
    tuple: "a list",
    dict: "a map",
    type(None): "null",
}


class Unwritable(Exception):
    """Something that is no value of YAML; the message says what."""


def kind_of(value: object) -> str:
    """In words for people."""
    return _WORDS.get(type(value)) or f"a {type(value).__name__.lower()}"


def written(value: Any) -> str:
    """The value as it stands in the text; what a macro or a block yielded has been written already."""
    return marked_text(value) if isinstance(value, Rendered) else _json(value)


def _json(value: Any) -> str:
    match value:
        case Undefined():
            value._fail_with_undefined_error()  # noqa: SLF001  str() of the one that an `if` without `else` yields is empty
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + _ESCAPED.sub(_escape, value) + '"'
        case int():
            return str(value)
        case float():
            return _number(value)
        case list() | tuple():
            return "[" + ", ".join(map(_json, value)) + "]"
        case dict():
            return _map(value)
    raise Unwritable(f"{kind_of(value)} can't be written; texts, numbers, true, false, null, lists and maps can")


def _map(entries: dict[Any, Any]) -> str:
    for key in entries:
        if not isinstance(key, str):
            raise Unwritable(f"a map is written only if its keys are texts, and {key!r} is none")
    return "{" + ", ".join(f"{_json(key)}: {_json(entries[key])}" for key in sorted(entries)) + "}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise Unwritable("a number that is infinite, or no number, can't be written")
    text = repr(value)
    # YAML 1.1 takes 1e+16 for a text.
    return text if "." in text else text.replace("e", ".0e")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    number = ord(character)
    if 0xD800 <= number <= 0xDFFF:
        raise Unwritable(f"the text holds half a character, \\u{number:04x}")
    # JSON's pairs of halves mean two characters to YAML.
    return _SHORT.get(character) or (f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")
