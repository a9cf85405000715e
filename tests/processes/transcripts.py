"""Runs transcripts: files of commands with what each of them prints."""

import os
import subprocess
import sys
from pathlib import Path

from tests.lab.places import REPOSITORY
from tests.processes.kept_world import kept
from tests.processes.script_worlds import WORLDS

FOLDER = REPOSITORY / "tests" / "scripts"
SCRIPTS = sorted(FOLDER.glob("*.txt"))
ALL_WORLDS = {**WORLDS, "kept": kept}
STARTED = Path(sys.executable).parent  # where the console script is


def replayed(script: str, folder: Path, programs: Path = STARTED) -> str:
    """The script with the outputs that it has now; `programs` is where the shell finds `reconciler`."""
    lines: list[str] = []
    for line in script.splitlines():
        if line.startswith("@ "):
            ALL_WORLDS[line[2:]](folder)
            lines.append(line)
        elif line.startswith("$ "):
            lines += [line, *_printed(line[2:], folder, programs), ""]
        elif line.startswith("#"):
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def environment(folder: Path, programs: Path = STARTED) -> dict[str, str]:
    """What the commands of a transcript find set."""
    return {
        "PATH": f"{programs}:{STARTED}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "KUBECONFIG": str(folder / "there-is-none"),
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _printed(command: str, folder: Path, programs: Path) -> list[str]:
    """What a shell in the folder says, on either of its outputs."""
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment(folder, programs),
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    told = (done.stdout + done.stderr).replace(str(folder), "FOLDER").splitlines()
    told += [f"exit {done.returncode}"] if done.returncode else []
    # Indented, so that nothing printed can be taken for a command or a comment of the transcript.
    return [f"  {line}".rstrip() for line in told]
