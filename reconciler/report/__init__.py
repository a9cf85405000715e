"""One document, many formats: pure functions from what was found to the text that says so."""

from collections.abc import Callable

from reconciler.report import github, json_format, junit, sarif, text
from reconciler.report.document import Checked

Writer = Callable[[Checked, bool], str]


def _colorless(write: Callable[[Checked], str]) -> Writer:
    return lambda document, _color: write(document)


WRITERS: dict[str, Writer] = {
    "text": text.write,
    "json": _colorless(json_format.write),
    "github": _colorless(github.write),
    "sarif": _colorless(sarif.write),
    "junit": _colorless(junit.write),
}

FORMATS = tuple(WRITERS)


def write(document: Checked, format: str, color: bool) -> str:  # noqa: A002 - what -o and people call it
    """The document in one of FORMATS: nothing, or whole lines; only text for people has colours."""
    writer = WRITERS.get(format)
    if not writer:
        raise ValueError(f'there is no format "{format}"; choose one of {", ".join(FORMATS)}')
    return writer(document, color)
