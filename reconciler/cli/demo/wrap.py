"""Lines folded to the width of a terminal, so that what is below what can still be seen; colours take no room."""

import re

from reconciler.report.visible import columns

_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_MARK = re.compile(r"\s*[-+!~✓#] ")
_WORD = re.compile(r"(\s*)(\S+)")


def folded(line: str, width: int | None) -> list[str]:
    """The line, and what hangs below it; a word that is too long by itself stays whole."""
    if width is None or _wide(line) <= width:
        return [line]
    hang = " " * _hang(_PAINT.sub("", line), width)
    lines, current = [], ""
    for space, word in _WORD.findall(line):
        longer = current + space + word
        if current.strip() and _wide(longer) > width:
            lines.append(current)
            current = hang + word
        else:
            current = longer
    return [*lines, current]


def _wide(text: str) -> int:
    return columns(_PAINT.sub("", text))


def _hang(line: str, width: int) -> int:
    """Below the last column where that is not too far to the right, else a little further in than the line."""
    starts = [each.end() for each in re.finditer(r"\S {2,}(?=\S)", line) if each.end() <= width * 3 // 5]
    if starts:
        return starts[-1]
    mark = _MARK.match(line)
    return mark.end() if mark else len(line) - len(line.lstrip()) + 4
