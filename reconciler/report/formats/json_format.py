"""A document for programs: one JSON object, whose shape has a version."""

from reconciler.report.canonical_json import canonical_json
from reconciler.report.document import ReportDocument


def write(document: ReportDocument) -> str:
    """The payload, and nothing of what is laid out for people."""
    return canonical_json(document.payload)
