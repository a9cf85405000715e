"""Where on its line a problem begins and ends."""

import msgspec

from reconciler.model.problem import Problem


class Span(msgspec.Struct, frozen=True, gc=False):
    """Columns count characters, from 1; the end is the first that is no longer meant."""

    start: int
    end: int


def span_of(problem: Problem) -> Span | None:
    """At least one column wide; None for a problem of the file as a whole."""
    if problem.line < 1:
        return None
    start = max(1, problem.column)
    return Span(start, start + max(1, problem.width))
