"""A Document: what is reported, such that every format can write it."""

from typing import Any

import msgspec

from reconciler.model.problem import Problem
from reconciler.report.blocks import Block, Severity


class Finding(msgspec.Struct, frozen=True, gc=False, order=True):
    """What is shown beside a line of a policy; a line of 0 means the file as a whole, a column of 0 the whole line."""

    file: str
    line: int
    column: int
    code: str
    sentence: str
    remedy: str = ""
    width: int = 1
    severity: Severity = "error"
    subject: str = ""  # what it is about; it is known again by this, or else by its sentence


class CheckedCount(msgspec.Struct, frozen=True):
    """How many were looked at, those that nothing was found about too, and what they are called."""

    number: int
    noun: str
    fault: str  # what was looked for: error


class ReportDocument(msgspec.Struct, frozen=True):
    """People read the blocks, programs the payload; pipelines show findings, pull requests the annotations."""

    command: str  # that made it: validate
    title: str
    tool_version: str
    blocks: tuple[Block, ...]
    payload: dict[str, Any]  # JSON
    otherwise: str  # what a page says when there are no blocks
    judged: CheckedCount
    findings: tuple[Finding, ...] = ()
    annotations: tuple[Finding, ...] = ()
    titles: tuple[tuple[str, str], ...] = ()  # of a finding's code, in one line


def finding_of(problem: Problem) -> Finding:
    """A fault in a policy, as it is shown beside its line."""
    # Where a line is known, so is the column: the first, if nothing better.
    column = max(1, problem.column)
    return Finding(
        problem.file,
        problem.line,
        column,
        problem.code,
        problem.sentence,
        problem.remedy,
        max(1, problem.width),
        problem.severity,
    )
