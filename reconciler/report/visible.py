"""Text from a policy made fit to be shown: what is invisible, or would steer a terminal, is written out.

Policies come from anyone who can open a pull request. An escape sequence, a change of writing direction or a space that
is no space must neither act on the reader's terminal nor hide in what is quoted. Nor must a quoted text act on the
continuous integration that keeps the output: GitHub takes a line that begins with :: for a command, and ##[ anywhere in
a line; Azure Pipelines ##vso[, and TeamCity ##teamcity[.
"""

import re
import unicodedata

# Vowels and finals of Korean that was taken apart: they join the syllable before them.
_JOINING_JAMO = range(0x1160, 0x1200)


_COMMAND = re.compile(r"(##\w*)\[|^(\s*):(?=:)")


def visible(text: str) -> str:
    r"""The text with each character that does not print as Python writes it: \x1b, \u202e, \n; and likewise a
    character of what begins a command of continuous integration: ##\x5b, \x3a:."""
    if not text.isprintable():
        text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    return _COMMAND.sub(_inert, text) if "##" in text or "::" in text else text


def of_one_width(text: str) -> str:
    """An excerpt, of which pieces are shown side by side: what begins a command is broken without another length."""
    return _COMMAND.sub(lambda begin: f"{begin[1]}(" if begin[1] else f"{begin[2]}.", text)


def visible_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(visible, text.split("\n")))


def _inert(begin: re.Match[str]) -> str:
    return f"{begin[1]}\\x5b" if begin[1] else f"{begin[2]}\\x3a"


def columns(text: str) -> int:
    """How many columns of a terminal a visible text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"} or ord(character) in _JOINING_JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
