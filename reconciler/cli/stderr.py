"""Standard error of commands that plan: problems, notes, and a progress bar."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from reconciler import __version__, report
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import Output, wants_color, write
from reconciler.controller.cluster import ClusterView
from reconciler.controller.policies import Checkup
from reconciler.model.problem import Problem
from reconciler.plan.planner import unread_of_use
from reconciler.policy.words import CODES
from reconciler.report.checked import CheckReport
from reconciler.report.header import unread_notes
from reconciler.report.wording import visible


def refused(checkup: Checkup, outputs: tuple[Output, ...] = (), color: str = "auto") -> int:
    """Prints the problems in each requested format; policies with problems have no plan."""
    check_report = noted_report(checkup)
    if outputs:
        write(check_report, outputs, color)
    else:
        click.echo(report.write(check_report, "text", color=wants_color(color)), err=True, nl=False)
    return ExitCode.INVALID_POLICY


def noted_report(checkup: Checkup) -> CheckReport:
    """Prints the notes, and returns the report of problems and warnings."""
    for notice in checkup.notices:
        click.echo(f"note: {notice}", err=True)
    resolved = checkup.resolved
    return CheckReport((*resolved.problems, *resolved.warnings), resolved.files, __version__, CODES)


def warning_lines(warnings: Sequence[Problem]) -> tuple[str, ...]:
    """One line per warning about policies."""
    return tuple(
        f"{each.file}:{each.line}: {each.sentence}" + (f" ({each.remedy})" if each.remedy else "") for each in warnings
    )


def print_cluster_warnings(cluster_view: ClusterView) -> None:
    """Prints the kinds that could not be read, and notes about a cluster file."""
    for note in (*cluster_view.notes, *(each.text for each in unread_notes(unread_of_use(cluster_view.observed)))):
        click.echo(f"note: {visible(note)}", err=True)


# --- Progress bar on standard error, if it is a terminal.

_PARTS = 1_000


@contextmanager
def progress(label: str) -> Iterator[Callable[[float], None]]:
    """Yields a function that takes the progress, from 0 to 1."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=_PARTS, label=label, file=sys.stderr) as bar:
        yield lambda part: bar.update(max(0, round(part * _PARTS) - bar.pos))
