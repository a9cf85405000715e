"""`reconciler simulate`: runs the real loop over hours or days of simulated time, on a simulated cluster."""

import os
from pathlib import Path
from typing import Any

import click

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.files import replace_files
from reconciler.cli.options import Output, answered, output_options, write
from reconciler.cli.stderr import progress, refused
from reconciler.controller.simulation.load import Prepared, SimulationRequest, prepared
from reconciler.controller.simulation.report_page import page_of
from reconciler.controller.simulation.run import ScenarioRelocation, WorkerLost, played, shrunk
from reconciler.report.simulation.simulated import Simulated
from reconciler.report.simulation.simulated_document import simulated_document
from reconciler.report.wording import counted
from reconciler.simulate.bootstrap.market import NoCapacity
from reconciler.simulate.bootstrap.nodes import NoSuchPool
from reconciler.simulate.runner.run import traced

_IMPOSSIBLE = (NoCapacity, NoSuchPool, WorkerLost)  # errors of the scenario
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("scenario", type=_FILE)
@click.option(
    "--policies",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="A scenario can change its policies over time: use the policies in DIR in place of its last policies. Repeat "
    "to compare several sets of policies.",
)
@click.option(
    "--tree",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the files that SCENARIO names; by default the folder of SCENARIO.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**53), help="Seed of all random numbers; by default the scenario's seed."
)
@click.option(
    "--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Sets of policies simulated in parallel."
)
@click.option(
    "--report",
    "folder",
    type=_FOLDER,
    metavar="DIR",
    help="Write an HTML page with plots, and the plots as SVG, to this folder.",
)
@click.option(
    "--shrink",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="If the simulation fails, search for a smaller scenario that still fails, and write it to this file.",
)
@click.option(
    "--write-trace",
    "trace",
    type=_FOLDER,
    metavar="DIR",
    help="Do not simulate: write the initial nodes and the arriving pods to this folder, as nodes.csv and pods.csv.",
)
@output_options
def command(scenario: Path, outputs: tuple[Output, ...], color: str, **given: Any) -> int:
    """Simulate SCENARIO: run the control loop of the controller on a simulated cluster. Exit 1 if an expectation of the
    scenario is not met."""
    ready = answered(lambda: prepared(SimulationRequest(scenario, given["policies"], given["seed"], given["tree"])))
    if ready.checkup.resolved.problems:
        return refused(ready.checkup, outputs, color)
    for notice in ready.notices:
        click.echo(f"note: {notice}", err=True)
    if given["trace"] is not None:
        return _write_trace(ready, given["trace"])
    with progress("simulating") as tell:
        runs = answered(lambda: played(ready.plays, given["jobs"], tell), *_IMPOSSIBLE)
    document = simulated_document(runs, __version__)
    write(document, outputs, color)
    if given["folder"] is not None:
        _report(given["folder"], runs)
    if not any(each.failed for each in runs):
        return ExitCode.FINE
    if given["shrink"] is not None:
        _shrink((scenario, given["shrink"]), ready, runs)
    return ExitCode.FAILED


def _write_trace(ready: Prepared, folder: Path) -> int:
    found = answered(lambda: traced(ready.plays[0]), *_IMPOSSIBLE)
    _make(folder)
    files = {folder / "nodes.csv": found.nodes, folder / "pods.csv": found.pods}
    replace_files({path: text.encode() for path, text in files.items()})
    for path, text in files.items():
        click.echo(f"{path}: {counted(text.count(chr(10)) - 1, path.stem.removesuffix('s'))}", err=True)
    return ExitCode.FINE


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"nothing was written: {folder}: {error.strerror or error}") from None


def _report(folder: Path, runs: tuple[Simulated, ...]) -> None:
    page = page_of(runs, __version__)
    _make(folder)
    files = {"index.html": page.html, **page.pictures}
    replace_files({folder / name: text.encode() for name, text in files.items()})
    click.echo(f"{folder / 'index.html'}: HTML report, with its plots in the same folder", err=True)
    if page.note:
        click.echo(f"note: {page.note}", err=True)


def _shrink(files: tuple[Path, Path], ready: Prepared, runs: tuple[Simulated, ...]) -> None:
    scenario, file = files
    play = next(play for play, run in zip(ready.plays, runs, strict=True) if run.failed)
    with progress("shrinking") as tell:
        text = shrunk(play, ScenarioRelocation(scenario.parent, file.parent), tell)
    replace_files({file: text.encode()})
    click.echo(f"{file}: smaller scenario that fails in the same way", err=True)
    before, after = scenario.parent.resolve(), file.parent.resolve()
    if not before.is_relative_to(after):
        click.echo(
            f"note: the scenario names files outside its folder: use --tree {os.path.commonpath((before, after))}",
            err=True,
        )
