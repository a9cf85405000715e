"""`reconciler status`: shows an overview of policies and cluster."""

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import Output, answered, output_options, question_options, write
from reconciler.cli.plan_output import setting_of
from reconciler.cli.stderr import refused
from reconciler.controller.dry_run import dry_run
from reconciler.controller.policies import Question
from reconciler.report.status.overview import overview_document, overview_of


@click.command()
@question_options
@output_options
def command(question: Question, outputs: tuple[Output, ...], color: str) -> int:
    """Show an overview of policies and cluster: pools, nodes, GPUs, nodes that come or leave, holds, and the leader."""
    run = answered(lambda: dry_run(question))
    if run.cluster_view is None or run.head is None:
        return refused(run.checkup, outputs, color)
    notices = (*run.checkup.notices, *run.cluster_view.notes)
    write(overview_document(overview_of(setting_of(run.cluster_view, run.head), run.head, notices)), outputs, color)
    return ExitCode.FINE
