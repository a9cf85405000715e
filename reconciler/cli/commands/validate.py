"""`reconciler validate`: shows all problems of the policies in one run."""

import threading

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import Output, origin_options, output_options, write
from reconciler.cli.stderr import noted_report
from reconciler.controller.policies import Origins, check, check_bundle, watch
from reconciler.model.bundle import short_content
from reconciler.policy.resolve import NotChosen, chosen


@click.command()
@origin_options
@output_options
@click.option("-e", "--environment", help="Only check base and this environment: base, or the name of an overlay.")
@click.option("--watch", is_flag=True, help="Check again whenever the policies change, until Ctrl-C.")
def command(origins: Origins, outputs: tuple[Output, ...], color: str, environment: str | None, watch: bool) -> int:
    """Show all problems of the policies in PATHS, in base and in each overlay. The default of PATHS is the folder
    policies.

    If there are no problems, no report is printed. The exit code is 0 if there are no errors; warnings do not change
    it.
    """
    if watch:
        _keep_watching(origins, environment, outputs, color)
    checkup = check(origins, environment)
    if environment is not None and not checkup.resolved.problems:
        try:
            chosen(checkup.resolved, environment)
        except NotChosen as error:
            raise click.UsageError(str(error)) from None
    write(noted_report(checkup), outputs, color)
    return ExitCode.INVALID_POLICY if checkup.resolved.problems else ExitCode.FINE


def _keep_watching(origins: Origins, environment: str | None, outputs: tuple[Output, ...], color: str) -> None:
    """Checks again on each change, until interrupted. Names the revision in force beside the problems of a newer
    revision."""
    changed = threading.Event()
    source = watch(origins, changed.set)
    source.start()
    try:
        while True:
            changed.wait()
            changed.clear()
            bundle = source.last_refused or source.latest()
            checkup = check_bundle(bundle, only=environment)
            if checkup.resolved.problems:
                write(noted_report(checkup), outputs, color)
            else:
                click.echo(f"{short_content(bundle.revision)}: no problems", err=True)
    finally:
        source.stop()
