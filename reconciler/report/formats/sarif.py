"""The findings of a document for code scanning: a SARIF 2.1.0 log of one run.

A result is known again from run to run by its fingerprint, which must not change as lines move: it is taken of the
code, the file, the subject or else the sentence, and which of its like the result is. GitHub goes by a fingerprint that
its upload adds, and warns of one that a tool has put in that place; hence ours has a name of its own.
"""

import re
from collections import Counter
from hashlib import sha256
from typing import Any

from reconciler.report.canonical_json import canonical_json
from reconciler.report.document import Finding, ReportDocument
from reconciler.report.formats.span import span_of

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "problem/v1"

_BRACKET = re.compile(r"[\[\]]")
_NEVER_ESCAPED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def write(document: ReportDocument) -> str:
    """The log, with or without results in it."""
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
            "message": {"text": _message(finding)},
            "partialFingerprints": {FINGERPRINT: _fingerprint(*alike, str(seen[alike]))},
        }
        # What was found in no file at all has no location.
        results.append({**result, **({"locations": [_location(finding)]} if finding.file else {})})
    return results


def _message(finding: Finding) -> str:
    """Where there is little room, only the first sentence is shown: what is wrong comes first."""
    text = finding.sentence
    if finding.remedy:
        text += f"{' ' if text.endswith(('.', '?', '!')) else '. '}Remedy: {finding.remedy}"
    # Brackets before parentheses would be a link, to wherever a policy says.
    return _BRACKET.sub(r"\\\g<0>", text) if "](" in text else text


def _location(finding: Finding) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.file)}}
    if finding.line > 0:
        place["region"] = {"startLine": finding.line}
    if span := span_of(finding):
        place["region"] |= {"startColumn": span.start, "endColumn": span.end}
    return {"physicalLocation": place}


def _uri(path: str) -> str:
    """A relative reference; a colon is escaped too, or what stands before it would be taken for a scheme."""
    written = path.encode(errors="surrogatepass")
    return "".join(chr(byte) if byte in _NEVER_ESCAPED else f"%{byte:02X}" for byte in written)


def _fingerprint(*parts: str) -> str:
    digest = sha256()
    for part in parts:
        written = part.encode(errors="surrogatepass")
        # With its length before it, no part can be mistaken for the end of another.
        digest.update(b"%d:%b" % (len(written), written))
    return digest.hexdigest()
