"""`reconciler demo`: example policies, a pull request to them, and a simulated cluster that follows them."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from reconciler.cli.demo import Screen, Tour
from reconciler.cli.exit_codes import ExitCode


@click.command()
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the demo's files; by default a new temporary folder.",
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--fast", is_flag=True, help="Do not pause between steps.")
def command(folder: Path | None, color: str, **given: Any) -> int:
    """Check example policies, review a pull request, and watch a simulated cluster follow it. Needs no cluster."""
    screen = Screen(color, moves=not given["fast"])
    tour = Tour(screen, folder or Path(tempfile.mkdtemp(prefix="reconciler-demo-")))
    tour.welcome()
    tour.policies()
    tour.review()
    tour.time_passes()
    tour.why()
    tour.claims()
    tour.farewell(_called_as())
    return ExitCode.FINE


def _called_as() -> str:
    """Command that runs this program from another folder; empty if `reconciler` is on the path."""
    started = Path(sys.argv[0])
    found = shutil.which("reconciler")
    if started.name == "reconciler" and not (found and Path(found).samefile(started)):
        return str(started.resolve())
    return "" if started.name == "reconciler" else f"{sys.executable} -m reconciler"
