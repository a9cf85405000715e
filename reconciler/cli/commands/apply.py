"""`reconciler apply`: one cycle by a person, or exactly a saved plan."""

from pathlib import Path
from typing import Any

import click

from reconciler import __version__, wiring
from reconciler.cli.asking import answered, question_options, refuse_the_imagined
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.output import output_options, write
from reconciler.cli.telling import refused
from reconciler.model import names
from reconciler.model.planned.cycled import Cycled
from reconciler.plan.kept.saved import BadPlan, SavedPlan, read
from reconciler.report.applied import Applied, applied_document
from reconciler.report.setting import Setting
from reconciler.wiring.leading import Occupied
from reconciler.wiring.once import Acting, Moved, Once, apply_once, apply_saved


@click.command()
@click.argument("saved", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[PLAN]")
@question_options
@click.option("--prune", multiple=True, metavar="KIND/NAME", help="Agree to lose what no policy yields any more.")
@click.option("--namespace", default=names.OWN_NAMESPACE, show_default=True, metavar="NAME", help="Where the Lease is.")
@output_options
def command(saved: Path | None, question: wiring.Question, namespace: str, **shown: Any) -> int:
    """Make the cluster follow the policies, once; or do exactly what PLAN says, which plan --out wrote.

    Not beside a controller that runs: commit what it should do, or scale it to zero first."""
    refuse_the_imagined(question)
    acting = Acting(question.place.context, lambda told: click.echo(f"note: {told}", err=True), namespace)
    plan = _read(saved) if saved else None
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
    except Moved as moved:
        told = "\n".join(f"  {each}" for each in moved.sentences)
        remedy = "  remedy: plan again, look at it, and apply that"
        raise click.ClickException(f"nothing was done: the plan does not fit any more\n{told}\n{remedy}") from None


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
