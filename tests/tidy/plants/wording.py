"""Modules that open badly, names that say nothing and leftovers, and such as are in order."""

from tests.tidy.plant import Plant
from tests.tidy.rules.leftovers import (
    LATER,
    SWITCHED_OFF,
    UNWRITTEN,
    checks_are_silenced_by_name,
    nothing_is_left_for_later,
    nothing_stops_a_run,
)
from tests.tidy.rules.names import names_say_what_a_thing_is
from tests.tidy.rules.openings import modules_open_with_a_sentence

SKIP, XFAIL = SWITCHED_OFF

PLANTS = (
    Plant(
        modules_open_with_a_sentence,
        "modules without a docstring, or with one that is no sentence, are found",
        {
            "a.py": "import ast\n",
            "b/__init__.py": '"""A title\n\nA sentence."""\n',
            "c.py": '"""Is it? It is."""\n',
        },
        (
            "a.py:1: The module has no docstring",
            "b/__init__.py:1: The docstring's first sentence has no full stop",
            "c.py:1: The docstring's first sentence has no full stop",
        ),
    ),
    Plant(
        modules_open_with_a_sentence,
        "an empty file needs no opening, and a sentence may run over lines",
        {"a.py": "\n", "b.py": '#!/usr/bin/env python3\n"""One that goes\non (so to say.)\n\nMore"""\n'},
    ),
    Plant(
        names_say_what_a_thing_is,
        "words that fit anything are found in files, folders and classes",
        {
            "reconciler/utils/x.py": "class NodeManager: ...\n\n\nclass State: ...\n",
            "reconciler/state.py": "",
            "tests/cases/base-case.yaml": "",
            "tests/HTTPHandler.md": "",
        },
        (
            "reconciler/state.py:1: The file state is named state",
            "reconciler/utils:1: The folder utils is named utils",
            "reconciler/utils/x.py:1: The class NodeManager is named manager",
            "reconciler/utils/x.py:4: The class State is named state",
            "tests/HTTPHandler.md:1: The file HTTPHandler is named handler",
            "tests/cases/base-case.yaml:1: The file base-case is named base",
        ),
    ),
    Plant(
        names_say_what_a_thing_is,
        "words that only contain such a word are their own",
        {"reconciler/statement.py": "class Metadata: ...\nclass NodeState: ...\n", "docs/helpers.md": ""},
    ),
    Plant(
        nothing_is_left_for_later,
        "marks of unfinished work are found in programs",
        {
            "reconciler/x.py": f"raise {UNWRITTEN}\n# {LATER[0]}: finish\n",
            "tests/x.go": f"// {LATER[1]}\n",
            "tests/test_x.py": f"@pytest.mark.{SKIP}if(True)\n@mark.{XFAIL}\n",
        },
        (
            f"reconciler/x.py:1: {UNWRITTEN} is left over. Remedy: write it",
            f"reconciler/x.py:2: {LATER[0]} is left over. Remedy: do it now",
            f"tests/test_x.py:1: mark.{SKIP}if is left over. Remedy: make the test pass",
            f"tests/test_x.py:2: mark.{XFAIL} is left over",
            f"tests/x.go:1: {LATER[1]} is left over",
        ),
    ),
    Plant(
        nothing_is_left_for_later,
        "sums of digests are no words of ours",
        {"tests/go.sum": LATER[2], "reconciler/x.py": "# later\nmark.lab\n"},
    ),
    Plant(
        checks_are_silenced_by_name,
        "comments that silence everything are found, text that quotes them is not",
        {"x.py": "a = 1  # type: ignore\nb = '# noqa'  # NOQA\n# ruff: noqa\n"},
        (
            "x.py:1: `# type: ignore` silences everything",
            "x.py:2: `# NOQA` silences everything",
            "x.py:3: `# ruff: noqa` silences everything",
        ),
    ),
    Plant(
        checks_are_silenced_by_name,
        "comments that name what they silence may stay",
        {"x.py": "a = 1  # type: ignore[misc]\nb = 2  # noqa: S101\n# ruff: noqa: S101\n"},
    ),
    Plant(
        nothing_stops_a_run,
        "a debugger and a module that takes itself out are found",
        {"x.py": f"def f():\n    breakpoint()\n\n\nif f():\n    pytest.{SKIP}('no', allow_module_level=True)\n"},
        ("x.py:2: breakpoint() stops the run", "x.py:6: The module takes all its tests out of the run"),
    ),
    Plant(
        nothing_stops_a_run, "a single test may find that it can't run", {"x.py": f"def f():\n    pytest.{SKIP}()\n"}
    ),
)
