"""A document as GitHub shows it beside the lines of a pull request: workflow commands, one a line."""

from reconciler.report.blocks import Severity
from reconciler.report.document import Finding, ReportDocument
from reconciler.report.formats.span import span_of
from reconciler.report.visible import visible
from reconciler.report.wording import counted

# GitHub drops what a step says beyond these of one kind, without a word.
ANNOTATIONS = 10

_COMMANDS: tuple[tuple[Severity, str], ...] = (("error", "error"), ("warning", "warning"), ("note", "notice"))


def write(document: ReportDocument) -> str:
    """Nothing when there is nothing beside a line."""
    lines: list[str] = []
    left_out: list[str] = []
    for severity, command in _COMMANDS:
        findings = [each for each in document.annotations if each.severity == severity]
        # The line that tells what was left out is a notice too.
        room = ANNOTATIONS - (command == "notice" and bool(left_out or len(findings) > ANNOTATIONS))
        lines += [_annotation(command, each) for each in findings[:room]]
        if len(findings) > room:
            left_out.append(counted(len(findings) - room, f"more {command}"))
    if left_out:
        remedy = f"see all of them with: reconciler {document.command} -o text"
        lines.append(f"::notice::{', '.join(left_out)} without an annotation; {remedy}")
    return "".join(f"{line}\n" for line in lines)


def _annotation(command: str, finding: Finding) -> str:
    properties = {"file": finding.file} if finding.file else {}
    if finding.line > 0:
        properties["line"] = str(finding.line)
    if span := span_of(finding):
        # GitHub means the last column by the end, not the one after it.
        properties |= {"col": str(span.start), "endColumn": str(span.end - 1)}
    properties["title"] = finding.code
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = "\n".join(filter(None, (finding.sentence, finding.remedy)))
    return f"::{command} {written}::{_message(message)}"


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _message(text: str) -> str:
    # Lines stay lines; anything else that does not print is written out, or a log would show what it does.
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
