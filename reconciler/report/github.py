"""Problems as GitHub shows them beside the lines of a pull request: workflow commands, one a line."""

from reconciler.model.problem import Problem
from reconciler.report.document import Checked, counted
from reconciler.report.span import span_of
from reconciler.report.visible import visible

# GitHub drops what a step says beyond these, without a word.
ANNOTATIONS = 10


def write(checked: Checked) -> str:
    """Nothing when all is well."""
    problems = checked.in_order
    lines = [_annotation(problem) for problem in problems[:ANNOTATIONS]]
    if left_out := problems[ANNOTATIONS:]:
        more = counted(len(left_out), "more error")
        lines.append(f"::notice::{more} without an annotation; see all of them with: reconciler validate -o text")
    return "".join(f"{line}\n" for line in lines)


def _annotation(problem: Problem) -> str:
    properties = {"file": problem.file} if problem.file else {}
    if span := span_of(problem):
        # GitHub means the last column by the end, not the one after it.
        properties |= {"line": str(problem.line), "col": str(span.start), "endColumn": str(span.end - 1)}
    properties["title"] = problem.code
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = "\n".join(filter(None, (problem.sentence, problem.remedy)))
    return f"::error {written}::{_message(message)}"


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _message(text: str) -> str:
    # Lines stay lines; anything else that does not print is written out, or a log would show what it does.
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
