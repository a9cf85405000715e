"""`reconciler explain`: why an object is, or is not, acted on; now, or at a time in the history."""

from pathlib import Path
from typing import Any

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import TIME, answered, history_option, output_options, question_options, write
from reconciler.cli.plan_output import setting_of
from reconciler.cli.stderr import print_cluster_warnings, refused
from reconciler.controller.cluster import ClusterView
from reconciler.controller.dry_run import dry_run
from reconciler.controller.policies import Question, last_changes
from reconciler.model.instant import Instant
from reconciler.plan.files.dump import PlanningResult
from reconciler.report.explain.about import UnknownSubject
from reconciler.report.explain.subject import Explained, about, explained_document, parse_subject
from reconciler.report.plans.build import describe_decisions
from reconciler.report.plans.guard_section import with_ways_on


@click.command()
@click.argument("subject")
@question_options
@click.option("--at", type=TIME, help="Explain the state at this time, from the history that `reconciler run` stored.")
@history_option
@output_options
def command(subject: str, question: Question, at: Instant | None, **given: Any) -> int:
    """Show why SUBJECT is, or is not, acted on: node/NAME, pod/NAMESPACE/NAME, pool/NAME, provisioner/NAME,
    claim/NAMESPACE/NAME for the pods of a GpuClaim, claim/NAME for the node of a NodeClaim, or any other object of the
    plan as KIND/NAME or KIND/NAMESPACE/NAME."""
    history: Path | None = given.pop("history")
    try:
        meant = parse_subject(subject)
    except UnknownSubject as unknown:
        raise click.UsageError(str(unknown)) from None
    origins = None
    if at is not None:
        cluster_view, head = _past(history, at)
    else:
        run = answered(lambda: dry_run(question))
        if run.cluster_view is None or run.head is None:
            return refused(run.checkup, **given)
        cluster_view, head, origins = run.cluster_view, run.head, run.origins
    print_cluster_warnings(cluster_view)
    answer = answered(lambda: about(head, meant), UnknownSubject)
    setting = setting_of(cluster_view, head, origins=origins)
    real = [each for each in head.plan.guarded if not each.would]
    decision_texts = with_ways_on(setting, real, describe_decisions(head.inputs, answer.decisions))
    changes = last_changes(origins, [each.decision.reason.origin for each in decision_texts if each.place])
    explained = Explained(setting, answer.title, answer.headline, answer.outcome, answer.rows, decision_texts, changes)
    write(explained_document(explained), **given)
    return ExitCode.FINE


def _past(history: Path | None, at: Instant) -> tuple[ClusterView, PlanningResult]:
    # Imported only when needed: explaining the present needs no history.
    from reconciler.controller.dry_run import past  # noqa: PLC0415
    from reconciler.sources.history import NotKept  # noqa: PLC0415

    if history is None:
        raise click.UsageError("--at requires --history DIR, the folder in which `reconciler run` stores its history")
    return answered(lambda: past(history, at), NotKept)
