"""JSON whose bytes depend on nothing but the value, and that may be shown on any terminal and in any log."""

import json
import re

_COMMAND = re.compile(r"(##\w*)\[")  # of continuous integration, wherever it stands in a line


def canonical_json(value: object) -> str:
    """Keys sorted, two spaces of indent, letters as they are, and all that does not print escaped."""
    text = _COMMAND.sub(r"\1\\u005b", json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
    return "".join(each if each.isprintable() or each == "\n" else _escaped(each) for each in text) + "\n"


def _escaped(character: str) -> str:
    """As JSON escapes it; half of a surrogate pair is no text at all, and strict readers refuse it."""
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    digits = character.encode("utf-16-be").hex()
    return "".join(f"\\u{digits[at : at + 4]}" for at in range(0, len(digits), 4))
