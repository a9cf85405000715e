"""What commands that plan say on standard error: problems that stand in the way, and what to know of the cluster."""

from collections.abc import Sequence

import click

from reconciler import __version__, report
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options.output import Output, wants_color, write
from reconciler.controller import Checkup, ClusterView
from reconciler.model.problem import Problem
from reconciler.plan.planner import unread_of_use
from reconciler.policy.codes import CODES
from reconciler.report.checked import CheckReport
from reconciler.report.setting import unread_notes
from reconciler.report.visible import visible


def refused(checkup: Checkup, outputs: tuple[Output, ...] = (), color: str = "auto") -> int:
    """Tells the problems, in each format that was asked for; there is no plan of policies that have any."""
    for notice in checkup.notices:
        click.echo(f"note: {notice}", err=True)
    resolved = checkup.resolved
    check_report = CheckReport((*resolved.problems, *resolved.warnings), resolved.files, __version__, CODES)
    if outputs:
        write(check_report, outputs, color)
    else:
        click.echo(report.write(check_report, "text", color=wants_color(color)), err=True, nl=False)
    return ExitCode.INVALID_POLICY


def warning_lines(warnings: Sequence[Problem]) -> tuple[str, ...]:
    """Warnings about policies, in a line each."""
    return tuple(
        f"{each.file}:{each.line}: {each.sentence}" + (f" ({each.remedy})" if each.remedy else "") for each in warnings
    )


def print_cluster_warnings(cluster_view: ClusterView) -> None:
    """What of all that plans go by could not be read, and what a reader must know of a file."""
    for note in (*cluster_view.notes, *(each.text for each in unread_notes(unread_of_use(cluster_view.observed)))):
        click.echo(f"note: {visible(note)}", err=True)
