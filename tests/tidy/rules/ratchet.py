"""The ratchet: functions longer than the aim are listed with their length, which may only go down."""

import tomllib

from tests.tidy.finding import Finding
from tests.tidy.functions import Function, functions
from tests.tidy.tree import Tree

LISTED = "tests/tidy/long_functions.toml"
LINES_AIMED_AT = 40


def long_functions_only_shrink(tree: Tree) -> list[Finding]:
    """Functions over 40 lines that are not listed, have grown, or are listed with more than they have."""
    listed: dict[str, int] = tomllib.loads(tree.text(LISTED))
    lengths: dict[str, Function] = {}
    for function in functions(tree, "reconciler", "tests"):
        key = f"{function.path}::{function.name}"
        # A property and its setter share a name; the longer one speaks for both.
        if function.length > LINES_AIMED_AT and (key not in lengths or function.length > lengths[key].length):
            lengths[key] = function
    grown = [
        Finding(
            function.path,
            function.line,
            f"{function.name} has {function.length} lines, more than the {listed.get(key, LINES_AIMED_AT)} it may",
            f"split it by what it decides (a function that was always longer is listed in {LISTED})",
        )
        for key, function in lengths.items()
        if function.length > listed.get(key, LINES_AIMED_AT)
    ]
    return grown + [
        _stale(tree, key, lengths[key].length if key in lengths else 0)
        for key, lines in listed.items()
        if key not in lengths or lengths[key].length < lines
    ]


def _stale(tree: Tree, key: str, length: int) -> Finding:
    line = next((number for number, text in tree.lines(LISTED) if key in text), 1)
    if length:
        return Finding(LISTED, line, f"{key} has shrunk", f"lower the figure to {length}")
    return Finding(LISTED, line, f"{key} is gone, or no longer than {LINES_AIMED_AT} lines", "take the entry out")
