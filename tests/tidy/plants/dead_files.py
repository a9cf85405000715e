"""Files that nothing reaches, and such as something does."""

from tests.tidy.plant import Plant
from tests.tidy.rules.dead_files import (
    modules_of_the_product_are_imported,
    modules_of_the_tests_are_used,
    other_files_are_named_somewhere,
)

PRODUCT = {
    "reconciler/__init__.py": "",
    "reconciler/__main__.py": "from reconciler.cli import main\n",
    "reconciler/cli/__init__.py": "",
    "reconciler/cli/main.py": 'NAMES = ("dry-run",)\nCHILD = "reconciler.child"\n',
    "reconciler/cli/commands/__init__.py": "",
    "reconciler/cli/commands/dry_run.py": "def f():\n    from ... import single\n",
    "reconciler/child.py": "from .model.noun import Noun\n",
    "reconciler/single/__init__.py": "",
    "reconciler/model/__init__.py": "",
    "reconciler/model/noun.py": "",
}

TESTS = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["-p", "tests.plugin"]\n',
    "tests/__init__.py": "",
    "tests/plugin.py": "",
    "tests/conftest.py": "from tests import world\n",
    "tests/world.py": "from .lab.server import Server\n",
    "tests/lab/__main__.py": "",
    "tests/lab/server.py": "",
    "tests/unit/test_x.py": "",
}

OTHERS = {
    "tests/test_cases.py": 'CASES = Path("cases")\nRECORDED = "answers.json"\n',
    "tests/cases/drain/one.yaml": "",
    "tests/answers.json": "",
    "reconciler/py.typed": "",
}

PLANTS = (
    Plant(
        modules_of_the_product_are_imported,
        "modules that only tests import, and commands nobody can call, are found",
        {
            **PRODUCT,
            "reconciler/model/unused.py": "import reconciler.model.unused\n",
            "reconciler/cli/commands/forgotten.py": "",
            "reconciler/alone/__init__.py": "",
            "tests/test_unused.py": "import reconciler.model.unused\n",
            "pyproject.toml": '[[tool.importlinter.contracts]]\nmodules = ["reconciler.model.unused"]\n',
        },
        (
            "reconciler/alone/__init__.py:1: Nothing outside the tests imports reconciler.alone.",
            "reconciler/cli/commands/forgotten.py:1: Nothing outside the tests imports",
            "reconciler/model/unused.py:1: Nothing outside the tests imports reconciler.model.unused. Remedy: delete",
        ),
    ),
    Plant(
        modules_of_the_product_are_imported,
        "relative imports, child processes and commands called by name are uses",
        PRODUCT,
    ),
    Plant(
        modules_of_the_tests_are_used,
        "a module that no test imports is found",
        {**TESTS, "tests/lab/orphan.py": "", "tests/check_x.py": ""},
        (
            "tests/check_x.py:1: No test imports tests.check_x. Remedy: delete it, or use it; tests stand in test_",
            "tests/lab/orphan.py:1: No test imports tests.lab.orphan",
        ),
    ),
    Plant(modules_of_the_tests_are_used, "plugins that the settings name are used", TESTS),
    Plant(
        other_files_are_named_somewhere,
        "a file that neither is named nor lies in a folder that is, is found",
        {**OTHERS, "tests/old.json": "see old.json", "tests/recordings/two.txt": ""},
        (
            "tests/old.json:1: No file names this one, nor a folder that it would be found in. Remedy: delete it",
            "tests/recordings/two.txt:1: No file names this one",
        ),
    ),
    Plant(other_files_are_named_somewhere, "a folder of cases is walked as a whole", OTHERS),
)
