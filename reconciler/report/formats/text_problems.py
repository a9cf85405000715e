"""Problems for a person at a terminal: place, sentence, source line and caret."""

from reconciler.model.problem import Problem
from reconciler.report.blocks import Tone
from reconciler.report.document import finding_of
from reconciler.report.formats.excerpt import underlined
from reconciler.report.formats.paint import Paint
from reconciler.report.formats.span import TextSpan, place_of, span_of
from reconciler.report.visible import visible

_TONES: dict[str, Tone] = {"error": "bad", "warning": "warn"}


def problem_lines(problem: Problem, paint: Paint) -> list[str]:
    """One line, or two or three."""
    finding = finding_of(problem)
    span = span_of(finding)
    place = visible(place_of(finding))
    fault = paint.toned(f"{problem.severity}[{visible(problem.code)}]", _TONES[problem.severity])
    head = ": ".join(part for part in (paint.bold(place), fault, visible(problem.sentence)) if part).rstrip()
    if span and problem.excerpt:
        return [head, *_excerpt(problem, span, paint)]
    return [head, f"      remedy: {visible(problem.remedy)}".rstrip()] if problem.remedy else [head]


def _excerpt(problem: Problem, span: TextSpan, paint: Paint) -> list[str]:
    """The source line with its number in a gutter, and below it carets and the remedy."""
    source, carets = underlined(problem.excerpt, span)
    gutter = f"  {problem.line} |"
    blank = "|".rjust(len(gutter))
    return [
        f"{paint.dim(gutter)} {source}".rstrip(),
        f"{paint.dim(blank)} {carets} {visible(problem.remedy)}".rstrip(),
    ]
