"""Files, functions and folders that are too long, and such as just fit."""

from tests.tidy.plant import Plant
from tests.tidy.rules.lengths import (
    files_are_short,
    folders_are_small,
    functions_are_short,
    functions_take_few_parameters,
)
from tests.tidy.rules.ratchet import LISTED, long_functions_only_shrink


def function_of(lines: int) -> str:
    """A method of so many lines; with those above it, it starts on line 3."""
    return "class Odd:\n    @property\n    def long(self) -> int:\n" + "        x = 1\n" * (lines - 1)


PARAMETERS = """class Odd:
    def fits(self, a, b, c, d, *rest, e, f): ...
    def does_not(self, a, b, c, d, *, e, f, g): ...
    async def nor_does(cls, a, b, /, c, d, e, f, g, **rest): ...
def free(self, a, b, c, d, e, f): ...
"""

PLANTS = (
    Plant(
        files_are_short,
        "line 501 is one too many",
        {"reconciler/x.py": "\n" * 501, "tests/y.py": "\n" * 500, "tests/z.yaml": "\n" * 600},
        ("reconciler/x.py:501: The file has 501 lines, more than 500. Remedy: one concept a file.",),
    ),
    Plant(files_are_short, "500 lines fit", {"reconciler/x.py": "\n" * 500}),
    Plant(
        functions_are_short,
        "a function is counted from def, decorators left out",
        {"reconciler/x.py": function_of(71), "tests/y.py": function_of(70)},
        ("reconciler/x.py:3: Odd.long has 71 lines, more than 70. Remedy: split it by what it decides",),
    ),
    Plant(functions_are_short, "70 lines fit", {"reconciler/x.py": function_of(70)}),
    Plant(
        functions_take_few_parameters,
        "parameters by keyword count, self does not",
        {"reconciler/x.py": PARAMETERS, "tests/y.py": PARAMETERS},
        (
            "reconciler/x.py:3: Odd.does_not takes 7 parameters",
            "reconciler/x.py:4: Odd.nor_does takes 7 parameters",
            "reconciler/x.py:5: free takes 7 parameters",
        ),
    ),
    Plant(
        functions_take_few_parameters,
        "six parameters and their receiver fit",
        {"reconciler/x.py": "class Odd:\n    def fits(self, a, b, c, d, e, f): ...\n"},
    ),
    Plant(
        folders_are_small,
        "files and folders count, at any depth",
        {f"reconciler/plan/{number}/x.py": "" for number in range(31)},
        ("reconciler/plan:1: The folder has 31 entries, more than 30.",),
    ),
    Plant(
        folders_are_small,
        "folders of like items may be long",
        {
            **{f"tests/cases/drain/{number}.yaml": "" for number in range(31)},
            **{f"reconciler/policy/kinds/k{number}.py": "" for number in range(31)},
            **{f"reconciler/plan/{number}/x.py": "" for number in range(30)},
        },
    ),
    Plant(
        long_functions_only_shrink,
        "growth and stale entries are found",
        {
            "reconciler/new.py": function_of(41),
            "reconciler/grown.py": function_of(52),
            "reconciler/shrunk.py": function_of(42),
            LISTED: '"reconciler/grown.py::Odd.long" = 51\n'
            '"reconciler/shrunk.py::Odd.long" = 43\n"reconciler/gone.py::x" = 50\n',
        },
        (
            "reconciler/grown.py:3: Odd.long has 52 lines, more than the 51 it may.",
            "reconciler/new.py:3: Odd.long has 41 lines, more than the 40 it may.",
            f"{LISTED}:2: reconciler/shrunk.py::Odd.long has shrunk. Remedy: lower the figure to 42.",
            f"{LISTED}:3: reconciler/gone.py::x is gone",
        ),
    ),
    Plant(
        long_functions_only_shrink,
        "what is listed with its very length may stay",
        {
            "reconciler/old.py": function_of(50),
            "reconciler/short.py": function_of(40),
            LISTED: '"reconciler/old.py::Odd.long" = 50\n',
        },
    ),
)
