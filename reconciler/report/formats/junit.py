"""The findings of a document as a pipeline shows tests: what an error was found about failed, what a warning was found
about was skipped, and what there are only notes about passed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape

from reconciler.report.document import Finding, ReportDocument
from reconciler.report.formats.span import place_of
from reconciler.report.visible import visible
from reconciler.report.wording import counted


def write(document: ReportDocument) -> str:
    """XML of one suite; never without a test, since many a reader takes that for a fault."""
    suite = f"reconciler {document.command}"
    tests: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in document.findings:
        tests[finding.subject or finding.file].append(finding)
    failures = sum(_failed(findings) for findings in tests.values())
    skipped = sum(not _failed(findings) and not _passes(findings) for findings in tests.values())
    others = max(0, document.judged.number - len(tests))
    passed = bool(others or not tests)
    counts = f'tests="{len(tests) + passed}" failures="{failures}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {counts}>",
        f'  <testsuite name="{suite}" {counts} errors="0" skipped="{skipped}">',
        *(line for name, findings in tests.items() for line in _test(suite, name or "no file", _outcomes(findings))),
        *(_passed(document, suite, others) if passed else ()),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _failed(findings: Sequence[Finding]) -> bool:
    return any(each.severity == "error" for each in findings)


def _passes(findings: Sequence[Finding]) -> bool:
    return all(each.severity == "note" for each in findings)


def _outcomes(findings: Sequence[Finding]) -> Iterator[str]:
    """Each error by itself, and beside errors what else was found; of a test that was skipped there is only one
    outcome."""
    if _failed(findings):
        for each in (each for each in findings if each.severity == "error"):
            message, code = _xml(each.sentence), _xml(each.code)
            yield f'<failure message="{message}" type="{code}">{_finding_text(each)}</failure>'
        others = "\n".join(_finding_text(each) for each in findings if each.severity != "error")
        if others:
            yield f"<system-out>{others}</system-out>"
    elif _passes(findings):
        text = "\n".join(map(_finding_text, findings))
        yield f"<system-out>{text}</system-out>"
    else:
        text = "\n".join(map(_finding_text, findings))
        yield f'<skipped message="{_xml(findings[0].sentence)}">{text}</skipped>'


def _passed(document: ReportDocument, suite: str, others: int) -> Iterator[str]:
    """The number stands beside the name: a name that changes would be another test in every run."""
    noun, fault = document.judged.noun, document.judged.fault
    text = f"<system-out>{counted(others, noun)} without {fault}s</system-out>"
    yield from _test(suite, f"other {noun}s", [text])


def _test(suite: str, name: str, outcomes: Iterator[str] | list[str]) -> Iterator[str]:
    yield f'    <testcase classname="{suite}" name="{_xml(name)}">'
    yield from (f"      {outcome}" for outcome in outcomes)
    yield "    </testcase>"


def _finding_text(finding: Finding) -> str:
    place = place_of(finding)
    lines = [f"{place}: {finding.sentence}" if place else finding.sentence]
    if finding.remedy:
        lines.append(f"remedy: {finding.remedy}")
    return "\n".join(map(_xml, lines))


def _xml(text: str) -> str:
    """Escaped; what XML may not hold even escaped does not print, and is written out."""
    return escape(visible(text))
