"""Problems for a person at a terminal: place, sentence, source line and caret."""

from reconciler.model.problem import Problem
from reconciler.report.document import Checked
from reconciler.report.excerpt import underlined
from reconciler.report.paint import Paint
from reconciler.report.span import Span, span_of
from reconciler.report.visible import visible


def write(checked: Checked, color: bool) -> str:
    """Nothing when all is well."""
    if not checked.problems:
        return ""
    paint = Paint(color)
    lines = [line for problem in checked.in_order for line in _lines(problem, paint)]
    return "\n".join([*lines, checked.summary, ""])


def _lines(problem: Problem, paint: Paint) -> list[str]:
    span = span_of(problem)
    place = visible(problem.file) + (f":{problem.line}:{span.start}" if span else "")
    fault = paint.red(f"error[{visible(problem.code)}]")
    head = ": ".join(part for part in (paint.bold(place), fault, visible(problem.sentence)) if part).rstrip()
    if span and problem.excerpt:
        return [head, *_excerpt(problem, span, paint)]
    return [head, f"      remedy: {visible(problem.remedy)}".rstrip()] if problem.remedy else [head]


def _excerpt(problem: Problem, span: Span, paint: Paint) -> list[str]:
    """The source line with its number in a gutter, and below it carets and the remedy."""
    source, carets = underlined(problem.excerpt, span)
    gutter = f"  {problem.line} |"
    blank = "|".rjust(len(gutter))
    return [
        f"{paint.dim(gutter)} {source}".rstrip(),
        f"{paint.dim(blank)} {carets} {visible(problem.remedy)}".rstrip(),
    ]
