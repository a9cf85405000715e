"""Characters by which a text looks different to a reviewer than to a parser, and which policies and templates may not
hold: line breaks that not every tool takes for one, other controls, and controls of the direction of text.

A comment that ends at such a line break hides what follows on the same displayed line: `# harmless<CR>mode: Enforce`.
"""

import re
from unicodedata import name

from reconciler.model.problem import Problem

CODE = "RC011"

_HIDING = re.compile(
    "\r(?!\n)"  # a carriage return that does not belong to a line break
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # other controls; next line (NEL) among them
    "|[\u2028\u2029]"  # line and paragraph separator
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # direction of text
    "|[\U000e0000-\U000e007f]"  # tags: a hidden alphabet
)
_NAMES = {"\r": "carriage return", "\x0b": "vertical tab", "\x0c": "form feed", "\x85": "next line"}


def hidden(file: str, text: str) -> Problem | None:
    """The first such character of a text; one is enough to refuse the file."""
    match = _HIDING.search(text)
    if match is None:
        return None
    before = text[: match.start()]
    line, column = before.count("\n") + 1, match.start() - (before.rfind("\n") + 1) + 1
    character = match.group()
    called = _NAMES.get(character) or name(character, "control character").lower()
    sentence = f"the character U+{ord(character):04X} ({called}) is not allowed: it can hide text from a reviewer"
    remedy = "remove it; a value may write it as an escape in double quotes, and lines end in LF or CR LF"
    return Problem(file, line, column, CODE, sentence, remedy)
