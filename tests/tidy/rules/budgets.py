"""Every file of tests has its seconds, and together they fit into the ten minutes of `make test`."""

import tomllib
from pathlib import PurePosixPath

from tests.tidy.finding import Finding
from tests.tidy.tree import Tree

BUDGETS = "tests/budgets.toml"
TOTAL_SECONDS = 600
WORKERS = 2

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
    total = sum(seconds.values()) / WORKERS
    if total > TOTAL_SECONDS:
        remedy = "make the slowest tests faster, or move them to tests/long"
        said = f"The seconds add up to {total:g} for each of {WORKERS} workers, more than {TOTAL_SECONDS}"
        found.append(Finding(BUDGETS, 1, said, remedy))
    return found


def _line(tree: Tree, path: str) -> int:
    return next((number for number, line in tree.lines(BUDGETS) if f'"{path}"' in line), 1)
