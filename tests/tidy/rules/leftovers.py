"""What was left for later, switched off or silenced does not stay in the tree."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.tidy.finding import Finding
from tests.tidy.tree import Tree

# Each is put together from pieces, so that this file does not break the rule it states.
LATER = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")
UNWRITTEN = "NotImplemented" + "Error"
SWITCHED_OFF = ("sk" + "ip", "xf" + "ail")

PROGRAM_SUFFIXES = frozenset({".py", ".go", ".sh", ".j2"})

# First match wins within a line.
WORDS = (
    (re.compile("|".join(LATER)), "do it now, or take it out"),
    (re.compile(UNWRITTEN), "write it, or take the empty place out; an interface is a Protocol"),
    (
        re.compile(r"\bmark\.(?:" + "|".join(SWITCHED_OFF) + r")\w*"),
        "make the test pass, or take it out; what needs the control plane is marked `lab`",
    ),
)

# First match wins within a comment.
SILENCED = (
    (re.compile(r"#\s*type:\s*ignore(?!\[)"), "name the error it silences: ignore[code]"),
    (re.compile(r"#\s*(?:ruff:\s*)?noqa(?!:\s*[A-Z])", re.IGNORECASE), "name the rule it silences: noqa: CODE"),
)


def nothing_is_left_for_later(tree: Tree) -> list[Finding]:
    """Marks of unfinished work, and tests that are switched off."""
    return [
        Finding(path, number, f"{match[0]} is left over", remedy)
        for path in tree.paths
        if PurePosixPath(path).suffix in PROGRAM_SUFFIXES or PurePosixPath(path).name == "Makefile"
        for number, line in tree.lines(path)
        for match, remedy in _first(line, WORDS)
    ]


def checks_are_silenced_by_name(tree: Tree) -> list[Finding]:
    """Comments that silence every check on their line, today's and tomorrow's."""
    return [
        Finding(path, number, f"`{match[0]}` silences everything on its line", remedy)
        for path in tree.python()
        for number, comment in _comments(tree.text(path))
        for match, remedy in _first(comment, SILENCED)
    ]


def nothing_stops_a_run(tree: Tree) -> list[Finding]:
    """Calls that stop in a debugger, and modules of tests that take themselves out when they are collected."""
    found = []
    for path in tree.python():
        found += [
            Finding(path, call.lineno, "breakpoint() stops the run", "take it out")
            for call in tree.nodes(path, ast.Call)
            if isinstance(call.func, ast.Name) and call.func.id == "breakpoint"
        ]
        found += [
            Finding(path, call.lineno, "The module takes all its tests out of the run", "mark or mend the tests")
            for call in _called_on_import(tree.module(path))
            if ast.unparse(call.func) == f"pytest.{SWITCHED_OFF[0]}"
        ]
    return found


def _first(line: str, patterns: tuple[tuple[re.Pattern[str], str], ...]) -> Iterator[tuple[re.Match[str], str]]:
    for pattern, remedy in patterns:
        if match := pattern.search(line):
            yield match, remedy
            return


def _comments(text: str) -> Iterator[tuple[int, str]]:
    # Taking a file apart is slow, and few silence anything.
    if not any(pattern.search(text) for pattern, _ in SILENCED):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _called_on_import(node: ast.AST) -> Iterator[ast.Call]:
    """Calls that run when the module is imported, so not those inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _called_on_import(child)
