"""The Makefile as its rules: each target with what it needs and what it runs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.tidy.tree import Tree

MAKEFILE = "Makefile"

RULE = re.compile(r"^([^\s#:=][^:=#]*?)\s*:(?![:=])\s*([^#]*)")


@dataclass(frozen=True)
class Target:
    """One target, with the line it starts on."""

    line: int
    needs: tuple[str, ...]
    runs: tuple[str, ...]


def targets(tree: Tree) -> dict[str, Target]:
    """All targets of the Makefile; the special ones, such as .PHONY, too."""
    found: dict[str, Target] = {}
    names: list[str] = []
    for number, line in _whole_lines(tree):
        if line.startswith("\t"):
            for name in names:
                old = found[name]
                found[name] = Target(old.line, old.needs, (*old.runs, line.strip()))
        elif rule := RULE.match(line):
            names = rule[1].split()
            for name in names:
                found[name] = Target(number, tuple(rule[2].split()), ())
    return found


def _whole_lines(tree: Tree) -> Iterator[tuple[int, str]]:
    """Lines with what a backslash continues them by, numbered by where they start."""
    begun, start = "", 0
    for number, piece in tree.lines(MAKEFILE):
        start = start if begun else number
        begun += piece.removesuffix("\\")
        if not piece.endswith("\\"):
            yield start, begun
            begun = ""
