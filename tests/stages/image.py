"""A Dockerfile as its steps, run in a folder instead of an image: there is no container engine in the tests.

Absolute folders of the image are folders below a root. Packages of the distribution are not installed: that a step asks
for them is left to whoever builds the image.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.lab.places import REPOSITORY

FOLDERS = ("/src", "/build", "/app")
_OF_THE_DISTRIBUTION = "apt-get "


class Step(msgspec.Struct, frozen=True):
    """One instruction; `stage` is the name of its stage, or nothing for the last one."""

    stage: str
    instruction: str
    arguments: str


def steps(dockerfile: str) -> list[Step]:
    """The instructions in order, without comments; one that goes on after a backslash is one."""
    lines = [line for line in dockerfile.replace("\\\n", "").splitlines() if line and not line.startswith("#")]
    found, stage = [], ""
    for line in lines:
        instruction, _, arguments = line.partition(" ")
        if instruction == "FROM":
            stage = arguments.partition(" AS ")[2]
        found.append(Step(stage, instruction, arguments.strip()))
    return found


def carry_out(found: list[Step], root: Path) -> None:
    """Runs the commands of all stages, and copies what they copy."""
    folder = root / "src"
    for step in found:
        match step.instruction:
            case "WORKDIR":
                folder = _below(root, step.arguments)
                folder.mkdir(parents=True, exist_ok=True)
            case "COPY" if not step.arguments.startswith("--from="):
                _copy(step.arguments.split(), folder)
            case "RUN" if _OF_THE_DISTRIBUTION not in step.arguments:
                subprocess.run(["sh", "-ec", _outside(root, step.arguments)], cwd=folder, check=True)


def entry_point(found: list[Step], root: Path) -> list[str]:
    """The command that a container runs."""
    (written,) = (step.arguments for step in found if step.instruction == "ENTRYPOINT")
    return [re.sub(r"^/app\b", str(root / "app"), part) for part in json.loads(written)]


def _outside(root: Path, command: str) -> str:
    """The command with the folders below the root, and with the Python of the tests for that of the image."""
    command = re.sub(r"(?<![\w.])(/src|/build|/app)\b", lambda path: str(_below(root, path[1])), command)
    return re.sub(r"^python ", f"{sys.executable} ", command)


def _below(root: Path, path: str) -> Path:
    assert path in FOLDERS, f"{path} is no folder of the image that the test knows: {FOLDERS}"
    return root / path.removeprefix("/")


def _copy(arguments: list[str], folder: Path) -> None:
    *sources, target = arguments
    for source in sources:
        if source == ".":
            _copy_context(folder)
        else:
            shutil.copy(REPOSITORY / source, folder / target)


def _copy_context(folder: Path) -> None:
    """What Git follows, less what .dockerignore leaves out."""
    ignored = [line for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if name.split("/")[0] not in ignored and (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, folder / name)
