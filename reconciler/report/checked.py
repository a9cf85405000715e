"""Report of a check: the problems of the policies, as a document."""

from typing import Any

import msgspec

from reconciler.model.problem import Problem
from reconciler.report.document import Block, CheckedCount, Problems, ReportDocument, finding_of, line
from reconciler.report.wording import counted

FORMAT_VERSION = 1
_PUBLISHED = ("file", "line", "column", "width", "code", "sentence", "remedy", "severity")  # fields of a problem


class CheckReport(msgspec.Struct, frozen=True):
    problems: tuple[Problem, ...]
    files: int  # number of checked files, including files without problems
    tool_version: str
    titles: tuple[tuple[str, str], ...] = ()  # one-line title per problem code

    @property
    def in_order(self) -> tuple[Problem, ...]:
        """The problems by file, line and column."""
        return tuple(sorted(self.problems))

    @property
    def summary(self) -> str:
        errors = sum(each.severity == "error" for each in self.problems)
        warnings = len(self.problems) - errors
        names = [counted(errors, "error")] if errors or not warnings else []
        names += [counted(warnings, "warning")] if warnings else []
        places = f" in {counted(self.files, 'file')}" if self.files else ""
        return f"{' and '.join(names)}{places}"


def checked_document(checked: CheckReport) -> ReportDocument:
    """The document of a check. Without problems it has no blocks, so the text format prints nothing."""
    problems = checked.in_order
    findings = tuple(finding_of(problem) for problem in problems)
    blocks: tuple[Block, ...] = (Problems(problems), line(checked.summary)) if problems else ()
    return ReportDocument(
        command="validate",
        title="Policies",
        tool_version=checked.tool_version,
        blocks=blocks,
        payload=_payload(checked),
        otherwise=f"No errors in {counted(checked.files, 'file')}.",
        judged=CheckedCount(checked.files, "file", "error"),
        findings=findings,
        annotations=findings,
        titles=checked.titles,
    )


def _payload(checked: CheckReport) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "tool": {"name": "reconciler", "version": checked.tool_version},
        "files": checked.files,
        "problems": [{name: getattr(problem, name) for name in _PUBLISHED} for problem in checked.in_order],
    }
