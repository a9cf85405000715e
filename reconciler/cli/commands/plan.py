"""`reconciler plan`: shows the planned changes. Never writes to the cluster."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from reconciler.cli.options import DURATION, Output, answered, output_options, prune_option, question_options, write
from reconciler.cli.plan_output import PlanOutput, ending_options, setting_of
from reconciler.cli.stderr import progress, refused, warning_lines
from reconciler.controller.dry_run import DryRun, dry_run
from reconciler.controller.policies import Question
from reconciler.model.instant import LATEST
from reconciler.model.plan.decision import Ref
from reconciler.model.quantity import Duration
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.manifests.planner import unknown_node_classes
from reconciler.report.document import ReportDocument
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document


@click.command()
@question_options
@click.option(
    "--base", default="", metavar="REV", help="Show only what this change causes, compared with revision REV."
)
@prune_option
@click.option("--forecast", "ahead", type=DURATION, metavar="6h", help="Simulate the plan this far ahead.")
@ending_options
@output_options
def command(question: Question, ending: PlanOutput, outputs: tuple[Output, ...], color: str, **given: Any) -> int:
    """Show what would happen to the cluster, and why: nodes, GPUs, evictions, cost."""
    run = answered(lambda: dry_run(question))
    if run.cluster_view is None or run.head is None:
        return refused(run.checkup, outputs, color)
    compared = Compared(run.base, run.changed) if run.base else None
    notices = (
        *run.checkup.notices,
        *warning_lines(run.checkup.resolved.warnings),
        *run.cluster_view.notes,
        *run.notices,
        *_pointless(question.prune, run.head),
        *unknown_node_classes(run.head.inputs),
    )
    planned = planned_of(setting_of(run.cluster_view, run.head, run.base, run.origins), run.head, compared, notices)
    written = ending.written(run.head)
    planned = msgspec.structs.replace(planned, saved_digest=written.digest if written else "")
    document = plan_document(planned)
    if (ahead := given["ahead"]) is not None:
        document = _with_forecast(document, (run, run.head), ahead)
    write(document, outputs, color)
    ending.save(run.head, written)
    return ending.code(planned)


def _with_forecast(document: ReportDocument, planned: tuple[DryRun, PlanningResult], ahead: Duration) -> ReportDocument:
    from reconciler.controller.simulation.run import forecast  # noqa: PLC0415
    from reconciler.report.simulation.simulated_document import with_forecast  # noqa: PLC0415  the simulator is large
    from reconciler.simulate.bootstrap.market import NoCapacity  # noqa: PLC0415

    run, head = planned
    if head.inputs.now + ahead.milliseconds > LATEST:
        raise click.ClickException("the forecast ends after the year 9999: plan as of an earlier time (--now)")
    with progress("forecasting") as tell:
        return answered(lambda: with_forecast(document, forecast(run, head, ahead, tell)), NoCapacity)


def _pointless(prune: tuple[str, ...], head: PlanningResult) -> Iterator[str]:
    """Notes for --prune options without effect: a mistyped name, or an object that policies still declare, is no
    consent."""
    wished = {Ref(each.kind, each.namespace, each.name).title for each in head.inputs.desired.manifests}
    subjects = {each.subject.title for each in head.plan.decisions} - wished
    return (
        f"--prune {each} has no effect: the plan does not prune this object" for each in prune if each not in subjects
    )
