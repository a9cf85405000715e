"""Writes plain data as YAML for people: short things in one line, long ones below each other, quotes only where needed.

What is written may also stand in a template: between quotes nothing is left that Jinja would take for a tag.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.policy.yaml.scalars import Ambiguous, resolve

WIDTH = 110

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9./_%-]{0,62}")
# Quotes, what is no visible ASCII, and a brace that would begin a tag of a template.
_ESCAPED = re.compile(r'[^ -~]|["\\]|\{(?=[{%#])')
_SHORT = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


def entries(fields: Mapping[str, Any], indent: int) -> list[str]:
    """The lines of a map's entries."""
    return [line for name, value in fields.items() for line in entry(name, value, indent)]


def entry(name: str, value: Any, indent: int) -> list[str]:
    """The lines of one entry of a map."""
    key = " " * indent + f"{_scalar(name)}:"
    short = f"{key} {flow(value)}"
    if len(short) <= WIDTH or not isinstance(value, dict | list) or not value:
        return [short]
    return [key, *(entries(value, indent + 2) if isinstance(value, dict) else items(value, indent + 2))]


def items(values: Sequence[Any], indent: int) -> list[str]:
    """The lines of a list's items."""
    lines = []
    for value in values:
        dash = " " * indent + "- "
        short = dash + flow(value)
        if len(short) <= WIDTH or not isinstance(value, dict) or not value:
            lines.append(short)
        else:
            first, *others = entries(value, indent + 2)
            lines += [dash + first.lstrip(), *others]
    return lines


def flow(value: Any) -> str:
    """A value in one line."""
    match value:
        case dict():
            return "{" + ", ".join(f"{_scalar(name)}: {flow(each)}" for name, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value if _is_plain(value) else '"' + _ESCAPED.sub(_escape, value) + '"'
        case float():
            text = repr(value)
            # YAML 1.1 takes 1e+16 for a text.
            return text if "." in text else text.replace("e", ".0e")
    return str(value)


def _is_plain(text: str) -> bool:
    """Whether each reader of YAML takes it for this very text, without quotes."""
    if not _PLAIN.fullmatch(text):
        return False
    try:
        return resolve(text) == text
    except Ambiguous:
        return False


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    number = ord(character)
    # JSON's pairs of halves mean two characters to YAML.
    return _SHORT.get(character) or (f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")
