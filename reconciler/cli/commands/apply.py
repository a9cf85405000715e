"""`reconciler apply`: one cycle by a person, or exactly a saved plan."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from reconciler import __version__, report, wiring
from reconciler.cli.asking import answered, live_question_options
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.output import is_answered, output_options, wants_color, write
from reconciler.cli.setting import setting_of
from reconciler.cli.telling import refused
from reconciler.kube.context import context_name
from reconciler.model import names
from reconciler.model.planned.action import Hold
from reconciler.model.planned.cycled import Cycled
from reconciler.plan.kept.saved import BadPlan, SavedPlan, read
from reconciler.plan.kept.scene import Scene
from reconciler.report.applied import Applied, applied_document
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.planned_of import planned_of
from reconciler.report.setting import Setting
from reconciler.wiring.leading import Occupied
from reconciler.wiring.once import Acting, Moved, NotConfirmed, Once, apply_once, apply_saved


@click.command()
@click.argument("saved", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[PLAN]")
@live_question_options
@click.option("--prune", multiple=True, metavar="KIND/NAME", help="Agree to lose what no policy yields any more.")
@click.option("--namespace", default=names.OWN_NAMESPACE, show_default=True, metavar="NAME", help="Where the Lease is.")
@click.option("--yes", is_flag=True, help="Do it without asking; where nobody can answer, nobody is asked.")
@output_options
def command(saved: Path | None, question: wiring.Question, namespace: str, *, yes: bool, **shown: Any) -> int:
    """Make the cluster follow the policies, once; or do exactly what PLAN says, which plan --out wrote.

    On a terminal it shows the plan and asks before it does anything. A PLAN is applied without asking.

    Not beside a controller that runs: commit what it should do, or scale it to zero first."""
    context = question.place.context
    plan = _read(saved) if saved else None
    confirm = None if yes or saved or not is_answered() else partial(_confirmed, context)
    acting = Acting(context, lambda told: click.echo(f"note: {told}", err=True), namespace, confirm)
    once = answered(lambda: _act(plan, question, acting))
    if once.sight is None or once.cycled is None:
        return refused(once.checkup, **shown) if once.checkup else ExitCode.FAILED
    notices = once.checkup.notices if once.checkup else ()
    applied = Applied(_setting(once.sight, once.cycled), once.cycled, notices)
    write(applied_document(applied), **shown)
    return code_of(applied)


def _act(plan: SavedPlan | None, question: wiring.Question, acting: Acting) -> Once:
    try:
        return apply_saved(plan, acting) if plan else apply_once(question, acting)
    except Occupied as occupied:
        raise click.ClickException(str(occupied)) from None
    except NotConfirmed as declined:
        raise click.ClickException(f"nothing was done: {declined}") from None
    except Moved as moved:
        told = "\n".join(f"  {each}" for each in moved.sentences)
        remedy = "  remedy: plan again, look at it, and apply that"
        raise click.ClickException(f"nothing was done: the plan does not fit any more\n{told}\n{remedy}") from None


def _confirmed(context: str | None, scene: Scene) -> bool:
    """Shows the plan on standard error; one that does nothing is not asked about."""
    if all(isinstance(each.act, Hold) or each.would for each in scene.plan.decisions):
        return True
    sight = wiring.Sight(scene.inputs.observed, context_name(context), scene.inputs.now)
    document = plan_document(planned_of(setting_of(sight, scene), scene, None))
    click.echo(report.write(document, "text", color=wants_color("auto")), nl=False, err=True)
    return click.confirm("Apply this plan?", err=True)


def _read(file: Path) -> SavedPlan:
    try:
        return read(file.read_bytes())
    except BadPlan as bad:
        raise click.ClickException(f"{file}: {bad}\n  remedy: {bad.remedy}") from None


def _setting(sight: wiring.Sight, cycled: Cycled) -> Setting:
    desired = cycled.inputs.desired if cycled.inputs else None
    return Setting(
        environment=desired.environment if desired else "",
        revision=desired.revision if desired else "",
        cluster=sight.name,
        cluster_uid=sight.observed.cluster_uid,
        seen_at=sight.observed.seen_at,
        now=sight.now,
        tool_version=__version__,
    )


def code_of(applied: Applied) -> ExitCode:
    """A write that was not done comes before a blocked hold."""
    if applied.cycled.trouble:
        return ExitCode.FAILED
    if applied.not_done:
        return ExitCode.PARTLY if applied.done else ExitCode.FAILED
    return ExitCode.BLOCKED if any(each.blocks for each in applied.told) else ExitCode.FINE
