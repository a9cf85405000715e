"""Texts of a width, counted in the columns of a terminal."""

from collections.abc import Iterable

from reconciler.report.visible import columns, visible


def cell(text: str) -> str:
    """What is shown of a text beside others; blanks around it would only look like a fault of the alignment."""
    return visible(text).strip()


def widest(texts: Iterable[str], most: int | None = None) -> int:
    """The width of the widest; those of more than `most` columns don't count."""
    widths = (columns(text) for text in texts)
    return max((width for width in widths if most is None or width <= most), default=0)


def room(text: str, width: int) -> str:
    """What fills it up to the width; nothing where it is wider."""
    return " " * max(0, width - columns(text))


def padded(text: str, width: int) -> str:
    """Filled up to the width."""
    return text + room(text, width)
