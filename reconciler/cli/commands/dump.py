"""`reconciler dump`: all that a plan follows from, in one file that can be handed on and replayed."""

from pathlib import Path

import click

from reconciler import wiring
from reconciler.cli.asking import answered, question_options
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.replacing import replace_files
from reconciler.cli.telling import refused, tell_sight
from reconciler.plan.kept import dump


@click.command()
@question_options
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="A file; else standard output.")
def command(question: wiring.Question, out: Path | None) -> int:
    """Write policies and cluster into one file: redacted, canonical, with a digest. Any plan of it is the same plan."""
    checkup, sight, inputs = answered(lambda: wiring.inputs_of(question))
    if sight is None or inputs is None:
        return refused(checkup)
    tell_sight(sight)
    content = dump.write(inputs)
    if out:
        replace_files({out: content})
        nodes, pods = len(inputs.observed.nodes), len(inputs.observed.pods)
        click.echo(f"{out}: {nodes} nodes, {pods} pods, {len(content):,} bytes", err=True)
    else:
        click.echo(content, nl=False)
    return ExitCode.FINE
