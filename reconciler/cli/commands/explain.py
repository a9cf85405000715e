"""`reconciler explain`: why something is, or is not, being acted on."""

import click

from reconciler import wiring
from reconciler.cli.asking import answered, question_options
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.output import Output, output_options, write
from reconciler.cli.setting import setting_of
from reconciler.cli.telling import refused, tell_sight
from reconciler.plan.explanation.about import UnknownSubject
from reconciler.plan.explanation.subject import about, asked
from reconciler.report.explained import Explained, explained_document
from reconciler.report.plans.planned_of import told_of


@click.command()
@click.argument("subject")
@question_options
@output_options
def command(subject: str, question: wiring.Question, outputs: tuple[Output, ...], color: str) -> int:
    """Tell why SUBJECT is, or is not, being acted on: node/NAME, pod/NAMESPACE/NAME, pool/NAME, provisioner/NAME, or
    claim/NAME for the node of a NodeClaim."""
    try:
        meant = asked(subject)
    except UnknownSubject as unknown:
        raise click.UsageError(str(unknown)) from None
    run = answered(lambda: wiring.dry_run(question))
    if run.sight is None or run.head is None:
        return refused(run.checkup, outputs, color)
    tell_sight(run.sight)
    try:
        answer = about(run.head, meant)
    except UnknownSubject as unknown:
        raise click.ClickException(str(unknown)) from None
    explained = Explained(
        setting_of(run.sight, run.head),
        answer.title,
        answer.headline,
        answer.outcome,
        answer.rows,
        told_of(answer.decisions, run.head.inputs.observed),
    )
    write(explained_document(explained), outputs, color)
    return ExitCode.FINE
