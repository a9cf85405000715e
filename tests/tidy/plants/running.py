"""Tests without a budget and ways in that lead nowhere, and such as are in order."""

from tests.tidy.plant import Plant
from tests.tidy.rules.budgets import BUDGETS, every_test_has_a_budget
from tests.tidy.rules.entry_points import (
    CI,
    continuous_integration_runs_the_tests,
    make_check_looks_at_the_tree,
    phony_targets_exist,
)

TESTS = {
    **dict.fromkeys(
        ("tests/unit/test_a.py", "tests/live/test_b.py", "tests/soak/test_c.py", "tests/unit/shape.py"), ""
    ),
    "Makefile": "WITHOUT_LAB := tests/tidy tests/unit\nPAIR := -n 2 --dist\nON_LABS := -n 3 --dist\n",
}

MAKEFILE = """BIN := bin
.PHONY: check \\
  tidy

check: tidy  ## all of it
\ttrue

tidy: $(BIN)
\t@$(BIN)/python -m pytest tests/tidy
"""

PLANTS = (
    Plant(
        every_test_has_a_budget,
        "files without seconds, seconds without file and a total too high are found",
        {**TESTS, BUDGETS: '[seconds]\n"tests/unit/test_a.py" = 920\n"tests/soak/test_c.py" = 3\n'},
        (
            f"{BUDGETS}:1: For each worker, 460 s without the lab and 1 s on it are more than 460 s. Remedy: make",
            f"{BUDGETS}:3: tests/soak/test_c.py is no file that `make test` runs. Remedy: take the entry out",
            f"tests/live/test_b.py:1: tests/live/test_b.py has no seconds in {BUDGETS}",
        ),
    ),
    Plant(
        every_test_has_a_budget,
        "what is not part of `make test` needs no seconds",
        {**TESTS, BUDGETS: '[seconds]\n"tests/unit/test_a.py" = 400\n"tests/live/test_b.py" = 660\n'},
    ),
    Plant(
        continuous_integration_runs_the_tests,
        "a script that is missing is found",
        {},
        (f"{CI}:1: There is no such file",),
    ),
    Plant(
        continuous_integration_runs_the_tests,
        "a script that cannot run, or runs something else, is found",
        {CI: "make test-some\n"},
        (f"{CI}:1: It can't be run. Remedy: chmod", f"{CI}:1: It does not call `make test`"),
    ),
    Plant(
        continuous_integration_runs_the_tests,
        "a script that calls the tests is enough",
        {CI: "#!/usr/bin/env bash\nexec make test\n"},
    ),
    Plant(
        phony_targets_exist,
        "a promise without a rule is found, on a continued line too",
        {"Makefile": MAKEFILE.replace("  tidy", "  tidy lock")},
        ("Makefile:2: .PHONY names lock, which has no rule",),
    ),
    Plant(phony_targets_exist, "rules that are all there", {"Makefile": MAKEFILE}),
    Plant(
        make_check_looks_at_the_tree,
        "a check that leaves the tree out is found",
        {"Makefile": MAKEFILE.replace("check: tidy", "check: lint")},
        ("Makefile:5: `make check` does not run tests/tidy",),
    ),
    Plant(make_check_looks_at_the_tree, "the way there may have stations", {"Makefile": MAKEFILE}),
)
