"""Reports: pure functions from results to documents, and from documents to text in each format."""

from collections.abc import Callable

from reconciler.report.checked import CheckReport, checked_document
from reconciler.report.document import ReportDocument
from reconciler.report.formats import ci, html_page, markdown, text

Writer = Callable[[ReportDocument, bool], str]


def _colorless(write: Callable[[ReportDocument], str]) -> Writer:
    return lambda document, _color: write(document)


WRITERS: dict[str, Writer] = {
    "text": text.write,
    "json": _colorless(ci.write_json),
    "markdown": _colorless(markdown.write),
    "github": _colorless(ci.write_github),
    "sarif": _colorless(ci.write_sarif),
    "junit": _colorless(ci.write_junit),
    "html": _colorless(html_page.write),
}

FORMATS = tuple(WRITERS)


def write(document: ReportDocument | CheckReport, format: str, color: bool) -> str:  # noqa: A002 - what -o and people call it
    """The document in one of FORMATS: empty, or complete lines. Only the text format has colours."""
    writer = WRITERS.get(format)
    if not writer:
        raise ValueError(f'there is no format "{format}"; choose one of {", ".join(FORMATS)}')
    return writer(checked_document(document) if isinstance(document, CheckReport) else document, color)
