"""Where on its line a finding begins and ends."""

import msgspec

from reconciler.report.document import Finding


class TextSpan(msgspec.Struct, frozen=True, gc=False):
    """Columns count characters, from 1; the end is the first that is no longer meant."""

    start: int
    end: int


def span_of(finding: Finding) -> TextSpan | None:
    """At least one column wide; None for a finding of a whole file or a whole line."""
    if finding.line < 1 or finding.column < 1:
        return None
    return TextSpan(finding.column, finding.column + max(1, finding.width))


def place_of(finding: Finding) -> str:
    """The file, and as much as is known of where in it."""
    if finding.line < 1:
        return finding.file
    return f"{finding.file}:{finding.line}" + (f":{finding.column}" if finding.column > 0 else "")
