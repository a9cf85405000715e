"""The source line a problem stands on, and the carets below it.

Both lines are laid out from the same pieces, one for each character of the source, so that a caret stands below what it
means however wide that is shown. Only what lies around the problem is looked at: a line may be as long as a file.
"""

from reconciler.report.formats.span import TextSpan
from reconciler.report.visible import columns, of_one_width, visible

LINE_COLUMNS = 100
TAB = "    "  # always as wide, so that a line that is cut looks as it did whole
CUT = "..."


def underlined(source: str, span: TextSpan) -> tuple[str, str]:
    """What is shown of a source line, and a line with carets below the span."""
    source = of_one_width(source.rstrip("\r\n"))
    # What is missing at the end of a line is marked one past it.
    start = min(span.start - 1, len(source))
    first, last = _window(source, start)
    before = (CUT if first else "") + _shown(source[first:start])
    after = _shown(source[start:last]) + (CUT if last < len(source) else "")
    carets = max(1, columns(_shown(source[start : min(span.end - 1, last)])))
    return (before + after).rstrip(), " " * columns(before) + "^" * carets


def _window(source: str, start: int) -> tuple[int, int]:
    """The part of a line that is shown: half of the columns right of the start, unless one side can do with less."""
    left = source[max(0, start - LINE_COLUMNS) : start][::-1]
    right = source[start : start + LINE_COLUMNS]
    wanted = _fitting(right, LINE_COLUMNS // 2)
    first = start - _fitting(left, LINE_COLUMNS - _room(right[:wanted]))
    return first, start + _fitting(right, LINE_COLUMNS - _room(source[first:start]))


def _fitting(text: str, room: int) -> int:
    """How many characters of a text fit."""
    count = 0
    for each in text:
        room -= _room(each)
        if room < 0:
            break
        count += 1
    return count


def _room(text: str) -> int:
    """Columns of a text, marks that stack up on one letter counted as well: they may be thousands."""
    return sum(max(1, columns(_shown(each))) for each in text)


def _shown(text: str) -> str:
    return TAB.join(map(visible, text.split("\t")))
