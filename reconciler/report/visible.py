"""Text from a policy made fit to be shown: what is invisible, or would steer a terminal, is written out.

Policies come from anyone who can open a pull request. An escape sequence, a change of writing direction or a space that
is no space must neither act on the reader's terminal nor hide in what is quoted.
"""

import unicodedata

# Vowels and finals of Korean that was taken apart: they join the syllable before them.
_JOINING_JAMO = range(0x1160, 0x1200)


def visible(text: str) -> str:
    r"""The text with each character that does not print as Python writes it: \x1b, \u202e, \n."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def columns(text: str) -> int:
    """How many columns of a terminal a visible text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me"} or ord(character) in _JOINING_JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
