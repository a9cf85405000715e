"""The ways in do what they are known for: `.ci/run` runs `make test`, `make check` looks at the tree."""

import os
import re

from tests.tidy.finding import Finding
from tests.tidy.makefile import MAKEFILE, Target, targets
from tests.tidy.tree import Tree

CI = ".ci/run"
MAKE_TEST = re.compile(r"^\s*(?:exec\s+)?make test\s*$", re.MULTILINE)


def continuous_integration_runs_the_tests(tree: Tree) -> list[Finding]:
    """`.ci/run` is there, can be run, and calls `make test`."""
    if not tree.holds(CI):
        return [Finding(CI, 1, "There is no such file", "write one that calls `make test`")]
    found = []
    if not os.access(tree.root / CI, os.X_OK):
        found.append(Finding(CI, 1, "It can't be run", f"chmod +x {CI}"))
    if not MAKE_TEST.search(tree.text(CI)):
        found.append(Finding(CI, 1, "It does not call `make test`", "call what a developer calls, and nothing else"))
    return found


def phony_targets_exist(tree: Tree) -> list[Finding]:
    """What .PHONY promises has a rule."""
    known = targets(tree)
    promised = known.get(".PHONY", Target(1, (), ()))
    return [
        Finding(MAKEFILE, promised.line, f".PHONY names {name}, which has no rule", "write the rule, or take it out")
        for name in promised.needs
        if name not in known
    ]


def make_check_looks_at_the_tree(tree: Tree) -> list[Finding]:
    """`make check` comes to a recipe that runs the tests in tests/tidy, directly or through what it needs."""
    known = targets(tree)
    reached, waiting = set[str](), ["check"]
    while waiting:
        name = waiting.pop()
        if name in known and name not in reached:
            reached.add(name)
            waiting += known[name].needs
    if any("tests/tidy" in line for name in reached for line in known[name].runs):
        return []
    line = known["check"].line if "check" in known else 1
    return [Finding(MAKEFILE, line, "`make check` does not run tests/tidy", "let check need a target that does")]
