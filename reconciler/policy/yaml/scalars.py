"""What an unquoted word means, where all readers of YAML agree on it; where they don't, it must be quoted.

YAML 1.1, which most tools still read, takes `no` for false, `012` for ten and `12:30:45` for 45,045; YAML 1.2 does
not. A policy in Git is read by several tools, so each such word is refused with the way to write it.
"""

import re

MAX_DIGITS = 18

_TRUTH = {"true": True, "false": False}
_OTHER_TRUTHS = dict.fromkeys(("y", "yes", "on", "true"), "true") | dict.fromkeys(("n", "no", "off", "false"), "false")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)$")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+$")
# pattern of a whole word, what is wrong with it; first match wins
_AMBIGUOUS = tuple(
    (re.compile(pattern + "$", re.IGNORECASE), text)
    for pattern, text in (
        (r"[-+]?\.(inf|nan)", "is no number that could be meant"),
        (r"[-+]?0[0-9_]+", "is an octal number to some readers of YAML"),
        (r"[-+]?0[xob][0-9a-f_]+", "is a number to some readers of YAML and a text to others"),
        (r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", "is a number in base 60 to some readers of YAML"),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?", "is a date to some readers of YAML and a text to others"),
        (r"[-+]?([0-9][0-9_]*)?\.?[0-9_]*(e[-+]?[0-9]+)", "is a number to some readers of YAML and a text to others"),
        (r"\+[0-9][0-9_.]*", "is a number to some readers of YAML and a text to others"),
        (r"-?[0-9]+_[0-9_]*(\.[0-9_]*)?", "is a number to some readers of YAML and a text to others"),
        (r"-?(\.[0-9][0-9_]*|[0-9]+\.)", "is a number to some readers of YAML and a text to others"),
        (r"-?0[0-9]*\.[0-9]+", "is a number to some readers of YAML and a text to others"),
        (r"=", "has a meaning of its own to some readers of YAML"),
    )
)


class Ambiguous(ValueError):
    """A word that can't be taken as it stands."""

    def __init__(self, code: str, sentence: str, remedy: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.remedy = code, sentence, remedy


def resolve(text: str) -> str | int | float | bool | None:
    """The value of an unquoted word; raises Ambiguous."""
    if text in {"", "~", "null"}:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if _INTEGER.match(text):
        if len(text) > MAX_DIGITS:
            raise Ambiguous("RC010", f"a number of {len(text)} digits is too large", f"at most {MAX_DIGITS}")
        return int(text)
    if _DECIMAL.match(text) and len(text) <= 2 * MAX_DIGITS:
        return float(text)
    _refuse(text)
    return text


def _refuse(text: str) -> None:
    if text.lower() in _OTHER_TRUTHS:
        truth = _OTHER_TRUTHS[text.lower()]
        sentence = f'"{text}" is {truth} to some readers of YAML and a text to others'
        raise Ambiguous("RC009", sentence, f'write {truth}, or "{text}" in quotes')
    if text.lower() == "null":
        raise Ambiguous("RC009", f'"{text}" is nothing to some readers of YAML', f'write null, or "{text}" in quotes')
    if len(text) > 64 or text[0] not in "+-.0123456789=":
        return
    for pattern, sentence in _AMBIGUOUS:
        if pattern.match(text):
            raise Ambiguous("RC009", f'"{text}" {sentence}', f'write "{text}" in quotes, or a plain number')
