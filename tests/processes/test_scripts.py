"""Transcripts: each file of tests/scripts is run as it stands, and must print what is recorded there.

A file begins with what it shows and `@ WORLD`, the folder that its commands run in (script_worlds.py makes it).
A line that begins with `$` is run by the shell; what it printed follows, indented, and an exit code that is not 0.
With `--record` the outputs are written again: the review is reading the difference.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes.kept_world import kept
from tests.processes.script_worlds import WORLDS

FOLDER = Path(__file__).parents[1] / "scripts"
SCRIPTS = sorted(FOLDER.glob("*.txt"))
ALL_WORLDS = {**WORLDS, "kept": kept}
CONTINUED = "\\\n"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_shows_what_the_commands_print(path: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    recorded = path.read_text()
    told = replayed(recorded, tmp_path)
    if pytestconfig.getoption("--record"):
        path.write_text(told)
    assert told == recorded


def test_there_are_transcripts() -> None:
    assert len(SCRIPTS) >= 5


def replayed(script: str, folder: Path) -> str:
    """The script with the outputs that it has now."""
    lines: list[str] = []
    for line in script.splitlines():
        if line.startswith("@ "):
            ALL_WORLDS[line[2:]](folder)
            lines.append(line)
        elif line.startswith("$ "):
            lines += [line, *printed(line[2:], folder), ""]
        elif line.startswith("#"):
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def printed(command: str, folder: Path) -> list[str]:
    """What a shell in the folder says, on either of its outputs."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "KUBECONFIG": str(folder / "there-is-none"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=180
    )
    told = (done.stdout + done.stderr).replace(str(folder), "FOLDER").splitlines()
    told += [f"exit {done.returncode}"] if done.returncode else []
    # Indented, so that nothing printed can be taken for a command or a comment of the transcript.
    return [f"  {line}".rstrip() for line in told]
