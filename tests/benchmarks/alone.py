"""Measures in a process of its own: what others left behind doesn't slow it, and its memory is its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def alone(module: str, *asked: object) -> dict[str, Any]:
    """What a module prints when it is run with these arguments."""
    command = [sys.executable, "-m", module, *map(str, asked)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures
