"""Every file of tests has its seconds, and together they fit into `make test`."""

import re
import tomllib
from pathlib import PurePosixPath

from tests.tidy.finding import Finding
from tests.tidy.makefile import MAKEFILE
from tests.tidy.tree import Tree

BUDGETS = "tests/budgets.toml"
TOTAL_SECONDS = 460

# Variables of the Makefile: the folders of the first of two runs, and options of each run, which say how many workers.
FOLDERS, FIRST, SECOND = "WITHOUT_LAB", "PAIR", "ON_LABS"

# Run by targets of their own, at a length of their own.
NOT_IN_MAKE_TEST = ("tests/long/", "tests/soak/", "tests/oracle/", "tests/benchmarks/")


def every_test_has_a_budget(tree: Tree) -> list[Finding]:
    """Files of tests without seconds, seconds without a file, and a total that is too much."""
    seconds: dict[str, float] = tomllib.loads(tree.text(BUDGETS)).get("seconds", {})
    collected = {
        path
        for path in tree.python("tests")
        if PurePosixPath(path).name.startswith("test_") and not path.startswith(NOT_IN_MAKE_TEST)
    }
    found = [
        Finding(path, 1, f"{path} has no seconds in {BUDGETS}", f'give it a line "{path}" = SECONDS under [seconds]')
        for path in sorted(collected - set(seconds))
    ]
    found += [
        Finding(BUDGETS, _line(tree, path), f"{path} is no file that `make test` runs", "take the entry out")
        for path in sorted(set(seconds) - collected)
    ]
    return found + _too_much(tree, seconds)


def _too_much(tree: Tree, seconds: dict[str, float]) -> list[Finding]:
    """Two runs, one after the other, of each of which the workers share the files."""
    folders = tuple(f"{folder}/" for folder in _variable(tree, FOLDERS).split())
    first = sum(each for path, each in seconds.items() if path.startswith(folders)) / _workers(tree, FIRST)
    second = sum(each for path, each in seconds.items() if not path.startswith(folders)) / _workers(tree, SECOND)
    if first + second <= TOTAL_SECONDS:
        return []
    said = f"For each worker, {first:g} s without the lab and {second:g} s on it are more than {TOTAL_SECONDS} s"
    return [Finding(BUDGETS, 1, said, "make the slowest tests faster, or mark parts of them long")]


def _workers(tree: Tree, name: str) -> int:
    said = re.search(r"-n (\d+)", _variable(tree, name))
    return int(said[1]) if said else 1


def _variable(tree: Tree, name: str) -> str:
    return next((line.partition(":=")[2] for _, line in tree.lines(MAKEFILE) if line.startswith(f"{name} :=")), "")


def _line(tree: Tree, path: str) -> int:
    return next((number for number, line in tree.lines(BUDGETS) if f'"{path}"' in line), 1)
