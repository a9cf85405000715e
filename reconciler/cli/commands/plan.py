"""`reconciler plan`: what would happen. Nothing is ever written to the cluster."""

from collections.abc import Iterator

import click

from reconciler import wiring
from reconciler.cli.asking import answered, question_options
from reconciler.cli.ending import Ending, ending_options
from reconciler.cli.output import Output, output_options, write
from reconciler.cli.setting import setting_of
from reconciler.cli.telling import refused
from reconciler.model.planned.action import Ref
from reconciler.plan.manifests.node_classes import unknown_node_classes
from reconciler.plan.scene import Scene
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.planned_of import Compared, planned_of


@click.command()
@question_options
@click.option("--base", default="", metavar="REV", help="Tell what this change does apart from what happens anyway.")
@click.option("--prune", multiple=True, metavar="KIND/NAME", help="Agree to lose what no policy yields any more.")
@ending_options
@output_options
def command(question: wiring.Question, ending: Ending, outputs: tuple[Output, ...], color: str) -> int:
    """Tell what would happen to the cluster, and why: nodes, GPUs, evictions, money."""
    run = answered(lambda: wiring.dry_run(question))
    if run.sight is None or run.head is None:
        return refused(run.checkup, outputs, color)
    compared = Compared(run.base, run.changed) if run.base else None
    notices = (
        *run.checkup.notices,
        *run.sight.notes,
        *run.notices,
        *_pointless(question.prune, run.head),
        *unknown_node_classes(run.head.inputs),
    )
    planned = planned_of(setting_of(run.sight, run.head, run.base), run.head, compared, notices)
    write(plan_document(planned), outputs, color)
    ending.save(run.head)
    return ending.code(run.head.plan)


def _pointless(prune: tuple[str, ...], head: Scene) -> Iterator[str]:
    """A name that is mistyped, or of what policies yield still, must not pass for an agreement."""
    wished = {Ref(each.kind, each.namespace, each.name).title for each in head.inputs.desired.manifests}
    subjects = {each.subject.title for each in head.plan.decisions} - wished
    return (
        f"--prune {each} agrees to nothing: no such object is to be pruned" for each in prune if each not in subjects
    )
