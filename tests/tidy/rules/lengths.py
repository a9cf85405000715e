"""Lengths stay such that a file, a function and a folder can each be taken in at one look."""

import ast
from collections import defaultdict

from tests.tidy.finding import Finding
from tests.tidy.functions import Function, functions
from tests.tidy.tree import Tree

OURS = ("reconciler", "tests")

LINES_A_FILE = 500
LINES_A_FUNCTION = 70
PARAMETERS = 6
ENTRIES_A_FOLDER = 30

# Folders of like items: one more case, kind, result or command makes none of the others harder to find.
OF_LIKE_ITEMS = (
    "tests/cases",
    "tests/policies",
    "tests/results",
    "tests/scripts",
    "reconciler/policy/kinds",
    "reconciler/cli/commands",
)


def files_are_short(tree: Tree) -> list[Finding]:
    """Python files of more than 500 lines."""
    return [
        Finding(path, LINES_A_FILE + 1, f"The file has {count} lines, more than {LINES_A_FILE}", "one concept a file")
        for path in tree.python(*OURS)
        if (count := len(tree.text(path).splitlines())) > LINES_A_FILE
    ]


def functions_are_short(tree: Tree) -> list[Finding]:
    """Functions of more than 70 lines, decorators not counted."""
    return [
        Finding(
            function.path,
            function.line,
            f"{function.name} has {function.length} lines, more than {LINES_A_FUNCTION}",
            "split it by what it decides; 40 lines is the aim",
        )
        for function in functions(tree, *OURS)
        if function.length > LINES_A_FUNCTION
    ]


def functions_take_few_parameters(tree: Tree) -> list[Finding]:
    """Functions of the product with more than six parameters, keyword-only ones included."""
    return [
        Finding(
            function.path,
            function.line,
            f"{function.name} takes {count} parameters, more than {PARAMETERS}",
            "what always travels together is a value: give it a name and pass that",
        )
        for function in functions(tree, "reconciler")
        if (count := _parameters(function)) > PARAMETERS
    ]


def folders_are_small(tree: Tree) -> list[Finding]:
    """Folders of more than thirty entries, but for folders of like items."""
    entries: dict[str, set[str]] = defaultdict(set)
    for path in tree.under(*OURS):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            entries["/".join(parts[:depth])].add(parts[depth])
    return [
        Finding(
            folder,
            1,
            f"The folder has {len(names)} entries, more than {ENTRIES_A_FOLDER}",
            "gather what belongs together in a folder named by what it is",
        )
        for folder, names in sorted(entries.items())
        if len(names) > ENTRIES_A_FOLDER and not f"{folder}/".startswith(tuple(f"{like}/" for like in OF_LIKE_ITEMS))
    ]


def _parameters(function: Function) -> int:
    arguments: ast.arguments = function.node.args
    named = [*arguments.posonlyargs, *arguments.args]
    itself = function.in_class and bool(named) and named[0].arg in {"self", "cls"}
    return len(named) + len(arguments.kwonlyargs) - itself
