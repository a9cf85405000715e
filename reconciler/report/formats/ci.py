"""Formats for pipelines and programs: GitHub workflow commands, SARIF, JUnit, and JSON."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from typing import Any

from reconciler.report.document import Finding, ReportDocument, Severity
from reconciler.report.formats.text import place_of, span_of
from reconciler.report.wording import canonical_json, counted, visible

# GitHub silently drops annotations of a step beyond these limits per kind.
ANNOTATIONS = 10

_COMMANDS: tuple[tuple[Severity, str], ...] = (("error", "error"), ("warning", "warning"), ("note", "notice"))


def write_github(document: ReportDocument) -> str:
    """GitHub workflow commands; empty without findings."""
    lines: list[str] = []
    left_out: list[str] = []
    for severity, command in _COMMANDS:
        findings = [each for each in document.annotations if each.severity == severity]
        # The line about omitted findings is a notice too.
        room = ANNOTATIONS - (command == "notice" and bool(left_out or len(findings) > ANNOTATIONS))
        lines += [_annotation(command, each) for each in findings[:room]]
        if len(findings) > room:
            left_out.append(counted(len(findings) - room, f"more {command}"))
    if left_out:
        remedy = f"list all with: reconciler {document.command} -o text"
        lines.append(f"::notice::{', '.join(left_out)} without an annotation; {remedy}")
    return "".join(f"{line}\n" for line in lines)


def _annotation(command: str, finding: Finding) -> str:
    properties = {"file": finding.file} if finding.file else {}
    if finding.line > 0:
        properties["line"] = str(finding.line)
    if span := span_of(finding):
        # GitHub's end column is inclusive.
        properties |= {"col": str(span.start), "endColumn": str(span.end - 1)}
    properties["title"] = finding.code
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = "\n".join(filter(None, (finding.sentence, finding.remedy)))
    return f"::{command} {written}::{_message(message)}"


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _message(text: str) -> str:
    # Newlines are kept; other characters that do not print are escaped, so that a log does not act on them.
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


# --- Findings for code scanning: a SARIF 2.1.0 log with one run.
#
# A result is identified across runs by its fingerprint, which must not change when lines move. The fingerprint covers
# the code, the file, the subject or else the sentence, and an index among equal results. GitHub's upload adds its own
# fingerprint and warns if a tool sets that name; therefore ours has another name.

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "problem/v1"

_BRACKET = re.compile(r"[\[\]]")
_NEVER_ESCAPED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def write_sarif(document: ReportDocument) -> str:
    """The log, with or without results."""
    codes = sorted({finding.code for finding in document.findings})
    titles = dict(document.titles)
    driver = {
        "name": "reconciler",
        "version": document.tool_version,
        "rules": [_rule(code, titles.get(code, "")) for code in codes],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": _results(document, codes)}
    return canonical_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(code: str, title: str) -> dict[str, Any]:
    return {"id": code, **({"shortDescription": {"text": title}} if title else {})}


def _results(document: ReportDocument, codes: list[str]) -> list[dict[str, Any]]:
    rule_index = {code: index for index, code in enumerate(codes)}
    seen: Counter[tuple[str, str, str]] = Counter()
    results = []
    for finding in document.findings:
        alike = (finding.code, finding.file, finding.subject or finding.sentence)
        seen[alike] += 1
        result = {
            "ruleId": finding.code,
            "ruleIndex": rule_index[finding.code],
            "level": finding.severity,
            "message": {"text": _sarif_message(finding)},
            "partialFingerprints": {FINGERPRINT: _fingerprint(*alike, str(seen[alike]))},
        }
        # A finding without a file has no location.
        results.append({**result, **({"locations": [_location(finding)]} if finding.file else {})})
    return results


def _sarif_message(finding: Finding) -> str:
    """Message of a result. Small displays show only the first sentence, so the problem comes first."""
    text = finding.sentence
    if finding.remedy:
        text += f"{' ' if text.endswith(('.', '?', '!')) else '. '}Remedy: {finding.remedy}"
    # Brackets followed by parentheses would be a link to a URL chosen by the policy.
    return _BRACKET.sub(r"\\\g<0>", text) if "](" in text else text


def _location(finding: Finding) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.file)}}
    if finding.line > 0:
        place["region"] = {"startLine": finding.line}
    if span := span_of(finding):
        place["region"] |= {"startColumn": span.start, "endColumn": span.end}
    return {"physicalLocation": place}


def _uri(path: str) -> str:
    """A relative reference. Colons are escaped, because the text before one would be parsed as a scheme."""
    written = path.encode(errors="surrogatepass")
    return "".join(chr(byte) if byte in _NEVER_ESCAPED else f"%{byte:02X}" for byte in written)


def _fingerprint(*parts: str) -> str:
    digest = sha256()
    for part in parts:
        written = part.encode(errors="surrogatepass")
        # Each part is prefixed with its length, so that different parts cannot concatenate to the same text.
        digest.update(b"%d:%b" % (len(written), written))
    return digest.hexdigest()


# --- Findings as tests for a pipeline: an error is a failure, a warning is skipped, and notes pass.


def write_junit(document: ReportDocument) -> str:
    """XML with one suite; never without a test, since many readers treat that as an error."""
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
    """One failure per error, with other findings beside them; a skipped test has only one outcome."""
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
    """The number of passed tests is not part of the name, because a changed name would be another test in every run."""
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
    """Escaped. Characters that XML does not allow even escaped do not print, and are written out."""
    return escape(visible(text))


# --- JSON for programs: one object with a format version.


def write_json(document: ReportDocument) -> str:
    """The payload, without the blocks for people."""
    return canonical_json(document.payload)
