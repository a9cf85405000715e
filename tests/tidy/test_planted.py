"""What `make check` runs for the tree refuses a copy of it with faults planted in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.plant import write
from tests.tidy.tree import Tree

THIS = Path(__file__).parents[2]

# The planting test itself would plant another copy, and so on.
COMMAND = (
    sys.executable,
    "-m",
    "pytest",
    "tests/tidy",
    f"--ignore={Path(__file__).relative_to(THIS)}",
    "-k",
    "this_tree",
)

# Each fault, and what has to be said about it.
UPWARD = '"""A planted module."""\n\nimport reconciler.cli.main as main\n'
SOCKET = '"""A planted module."""\n\nimport socket\n'
CLOCK = '"""A planted module."""\n\nfrom datetime import datetime\n\nTHEN = datetime.now()\n'
LONG = '"""A planted module."""\n\n\ndef long(x: int) -> int:\n' + "    x += 1\n" * 78 + "    return x\n"

FAULTS = {
    "reconciler/model/planted_upward.py": (UPWARD, 3, "is not allowed to import", "knowledge points one way"),
    "reconciler/model/planted_socket.py": (SOCKET, 3, "A pure folder touches the network", "let kube/, serve/"),
    "reconciler/plan/planted_clock.py": (CLOCK, 5, "it reaches for datetime.datetime.now", "take `now: Instant`"),
    "reconciler/model/planted_long.py": (LONG, 4, "long has 80 lines, more than 70", "split it by what it decides"),
}


@pytest.fixture(scope="module")
def said_of_the_faults(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the tests of tidy print in the planted copy."""
    copy = tmp_path_factory.mktemp("planted")
    for path in Tree(THIS).paths:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(THIS / path, copy / path)
    write(copy, {path: fault[0] for path, fault in FAULTS.items()})
    # The copy comes first on the path, before the package that is installed from the repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(COMMAND, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("path", FAULTS)
def test_a_planted_fault_is_named_with_its_place_and_its_remedy(path: str, said_of_the_faults: str) -> None:
    _, line, rule, remedy = FAULTS[path]
    about = [said for said in said_of_the_faults.splitlines() if said.startswith(f"{path}:{line}: ") and rule in said]
    assert about, said_of_the_faults
    assert all(f". Remedy: {remedy}" in said for said in about)
