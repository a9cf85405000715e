"""Problems as a pipeline shows tests: each file with problems is a test that failed."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from reconciler.model.problem import Problem
from reconciler.report.document import Checked, counted
from reconciler.report.span import span_of
from reconciler.report.visible import visible

SUITE = "reconciler validate"


def write(checked: Checked) -> str:
    """XML of one suite; never without a test, since many a reader takes that for a fault."""
    failed = [(file, tuple(found)) for file, found in groupby(checked.in_order, lambda problem: problem.file)]
    others = max(0, checked.files - len(failed))
    passed = bool(others or not failed)
    counts = f'tests="{len(failed) + passed}" failures="{len(failed)}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f'  <testsuite name="{SUITE}" {counts} errors="0" skipped="0">',
        *(line for file, found in failed for line in _failed(file, found)),
        *(_passed(others) if passed else ()),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _failed(file: str, problems: Sequence[Problem]) -> Iterator[str]:
    yield _test(file or "no file")
    for problem in problems:
        message, code = _xml(problem.sentence), _xml(problem.code)
        yield f'      <failure message="{message}" type="{code}">{_told(problem)}</failure>'
    yield "    </testcase>"


def _passed(files: int) -> list[str]:
    """The number stands beside the name: a name that changes would be another test in every run."""
    told = f"{counted(files, 'file')} without errors"
    return [_test("other files"), f"      <system-out>{told}</system-out>", "    </testcase>"]


def _test(name: str) -> str:
    return f'    <testcase classname="{SUITE}" name="{_xml(name)}">'


def _told(problem: Problem) -> str:
    span = span_of(problem)
    place = problem.file + (f":{problem.line}:{span.start}" if span else "")
    lines = [f"{place}: {problem.sentence}" if place else problem.sentence]
    if problem.remedy:
        lines.append(f"remedy: {problem.remedy}")
    return "\n".join(map(_xml, lines))


def _xml(text: str) -> str:
    """Escaped; what XML may not hold even escaped does not print, and is written out."""
    return escape(visible(text))
