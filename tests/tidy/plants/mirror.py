"""Unit tests that stand where nobody looks for them, and such as mirror the code under test."""

from tests.tidy.plant import Plant
from tests.tidy.rules.mirror import unit_tests_mirror_the_package

CODE = {"reconciler/plan/drain/planner.py": "", "tests/lab/ports.py": "", "tests/budget.py": "", "docs/limits.md": ""}

PLANTS = (
    Plant(
        unit_tests_mirror_the_package,
        "a folder without a counterpart, a test in no folder",
        {**CODE, "tests/unit/drain/test_planner.py": "", "tests/unit/test_planner.py": ""},
        (
            "tests/unit/drain/test_planner.py:1: There is no folder or module drain that this could test",
            "tests/unit/test_planner.py:1: tests/unit/test_planner.py stands in no folder",
        ),
    ),
    Plant(
        unit_tests_mirror_the_package,
        "tests of the package, of the lab, of documents, and of a module of tests/",
        {
            **CODE,
            "tests/unit/conftest.py": "",
            "tests/unit/plan/drain/stage.py": "",
            "tests/unit/plan/drain/test_planner.py": "",
            "tests/unit/lab/test_ports.py": "",
            "tests/unit/docs/test_limits.py": "",
            "tests/unit/test_budget.py": "",
        },
    ),
)
