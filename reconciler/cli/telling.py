"""What commands that plan say on standard error: problems that stand in the way, and what to know of the cluster."""

import click

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.output import wants_color
from reconciler.policy.codes import CODES
from reconciler.report import write
from reconciler.report.checked import Checked
from reconciler.wiring import Checkup, Sight


def refused(checkup: Checkup) -> int:
    """Tells the problems; there is no plan of policies that have any."""
    resolved = checkup.resolved
    told = Checked(resolved.problems, resolved.files, __version__, CODES)
    click.echo(write(told, "text", color=wants_color("auto")), err=True, nl=False)
    return ExitCode.INVALID_POLICY


def tell_sight(sight: Sight) -> None:
    """What could not be read, and what a reader must know of a file."""
    for note in sight.notes:
        click.echo(f"note: {note}", err=True)
    for each in sight.observed.unread:
        click.echo(f"note: {each.kind} could not be read: {each.why}", err=True)
