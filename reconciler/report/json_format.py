"""Problems for programs: one JSON object, whose shape has a version."""

from reconciler.model.problem import Problem
from reconciler.report.canonical_json import canonical_json
from reconciler.report.document import Checked

FORMAT_VERSION = 1


def write(checked: Checked) -> str:
    """The object, with or without problems in it."""
    return canonical_json(
        {
            "format_version": FORMAT_VERSION,
            "tool": {"name": "reconciler", "version": checked.tool_version},
            "files": checked.files,
            "problems": [_problem(problem) for problem in checked.in_order],
        }
    )


def _problem(problem: Problem) -> dict[str, str | int]:
    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "width": problem.width,
        "code": problem.code,
        "sentence": problem.sentence,
        "remedy": problem.remedy,
    }
