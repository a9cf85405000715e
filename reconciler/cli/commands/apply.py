"""`reconciler apply`: runs one cycle, or applies a saved plan exactly."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import click

from reconciler import __version__, report
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import (
    answered,
    is_answered,
    live_question_options,
    output_options,
    prune_option,
    wants_color,
    write,
)
from reconciler.cli.plan_output import setting_of
from reconciler.cli.stderr import refused
from reconciler.controller.apply_once import (
    Acting,
    NotAllowed,
    NotConfirmed,
    Occupied,
    Once,
    PlanOutdated,
    apply_once,
    apply_saved,
)
from reconciler.controller.cluster import ClusterView
from reconciler.controller.policies import Question
from reconciler.kube.client import context_name
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.files.saved_plan import BadPlan, SavedPlan, digest_of_saved, read
from reconciler.report.applied import Applied, applied_document
from reconciler.report.header import ReportHeader
from reconciler.report.plans.build import planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.wording import visible
from reconciler.sources.input_file import MOST_PLAN_BYTES, read_file

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@click.command()
@click.argument("saved", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[PLAN]")
@live_question_options
@prune_option
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt. Without a terminal there is no prompt.")
@click.option(
    "--digest", metavar="SHA256", help="Full digest of the reviewed PLAN, as printed by plan --out and by reports."
)
@output_options
def command(saved: Path | None, question: Question, digest: str | None, **given: Any) -> int:
    """Apply the policies to the cluster once, or apply exactly a PLAN saved by plan --out.

    On a terminal, apply shows the plan and asks for confirmation. With --digest, which names the reviewed plan, a
    PLAN is applied without a prompt. Without a terminal, a PLAN requires --digest.

    Do not use apply while a controller runs: commit the change instead, or scale the controller to zero first.
    """
    context, namespace = question.place.context, question.place.namespace
    yes, shown = given.pop("yes"), given
    plan = _reviewed(saved, digest) if saved else None
    if digest and not saved:
        raise click.UsageError("--digest requires a saved plan: name the PLAN file too")
    is_agreed = digest is not None if saved else yes or not is_answered()
    confirm = None if is_agreed else partial(_confirmed, context, digest_of_saved(plan) if plan else "")
    acting = Acting(context, lambda text: click.echo(f"note: {text}", err=True), namespace, confirm)
    once = answered(lambda: _act(plan, question, acting), Occupied)
    if once.cluster_view is None or once.cycled is None:
        return refused(once.checkup, **shown) if once.checkup else ExitCode.FAILED
    notices = once.checkup.notices if once.checkup else ()
    applied = Applied(_setting(once.cluster_view, once.cycled), once.cycled, notices)
    write(applied_document(applied), **shown)
    return code_of(applied)


def _act(plan: SavedPlan | None, question: Question, acting: Acting) -> Once:
    try:
        return apply_saved(plan, acting) if plan else apply_once(question, acting)
    except NotConfirmed as declined:
        raise click.ClickException(f"nothing was done: {declined}") from None
    except NotAllowed as error:
        why, sentences = "PLAN contains objects that templates must not render", map(visible, error.args)
    except PlanOutdated as moved:
        why, sentences = "the plan is out of date", map(str, moved.args)
    text = "\n".join((f"nothing was done: {why}", *(f"  {each}" for each in sentences)))
    raise click.ClickException(f"{text}\n  remedy: create a new plan, review it, and apply it")


def _confirmed(context: str | None, digest: str, scene: PlanningResult) -> bool:
    """Shows the plan on standard error, with the digest of a saved plan, and asks for confirmation. A plan without
    actions needs none."""
    if all(isinstance(each.act, Hold) or each.would for each in scene.plan.decisions):
        return True
    cluster_view = ClusterView(scene.inputs.observed, context_name(context), scene.inputs.now)
    document = plan_document(planned_of(setting_of(cluster_view, scene), scene, None))
    click.echo(report.write(document, "text", color=wants_color("auto")), nl=False, err=True)
    if not digest:
        return click.confirm("Apply this plan?", err=True)
    click.echo(f"Plan digest: {digest}", err=True)
    return click.confirm("Is this the digest of the reviewed plan, and should the plan be applied?", err=True)


def _reviewed(file: Path, digest: str | None) -> SavedPlan:
    """Reads a saved plan whose digest was reviewed. The file alone is not trusted."""
    if digest is not None and not _DIGEST.fullmatch(digest):
        raise click.UsageError(
            f"--digest must be a full digest, sha256: and 64 hexadecimal digits; got {len(digest)} characters"
        )
    if digest is None and not is_answered():
        raise click.UsageError(
            "add --digest sha256:…, the digest of the reviewed plan: plan --out and the report of the plan print it"
        )
    try:
        plan = read(read_file(file, MOST_PLAN_BYTES))
    except BadPlan as bad:
        raise click.ClickException(f"{file}: {bad}\n  remedy: {bad.remedy}") from None
    found = digest_of_saved(plan)
    if digest is not None and digest != found:
        text = f"{file} is not the reviewed plan: the file has digest {found}, --digest is {digest}"
        raise click.ClickException(f"nothing was done: {text}\n  remedy: apply the reviewed file, or create a new plan")
    return plan


def _setting(cluster_view: ClusterView, cycled: CycleResult) -> ReportHeader:
    desired = cycled.inputs.desired if cycled.inputs else None
    return ReportHeader(
        environment=desired.environment if desired else "",
        revision=desired.revision if desired else "",
        cluster=cluster_view.name,
        cluster_uid=cluster_view.observed.cluster_uid,
        seen_at=cluster_view.observed.seen_at,
        now=cluster_view.now,
        tool_version=__version__,
    )


def code_of(applied: Applied) -> ExitCode:
    """Exit code of an apply. A failed write takes precedence over a blocked hold."""
    if applied.cycled.trouble:
        return ExitCode.FAILED
    if applied.not_done:
        return ExitCode.PARTLY if applied.done else ExitCode.FAILED
    return ExitCode.BLOCKED if any(each.blocks for each in applied.decision_texts) else ExitCode.FINE
