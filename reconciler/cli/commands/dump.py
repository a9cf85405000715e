"""`reconciler dump`: writes all inputs of a plan into one file that can be shared and replayed."""

from pathlib import Path

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.files import PRIVATE, replace_files
from reconciler.cli.options import answered, question_options
from reconciler.cli.stderr import print_cluster_warnings, refused
from reconciler.controller.dry_run import inputs_of
from reconciler.controller.policies import Question, check
from reconciler.model.desired import Desired
from reconciler.plan.files import dump
from reconciler.policy.resolve import chosen
from reconciler.schema.generated import kubectl_line


@click.command()
@question_options
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Output file; by default standard output.")
@click.option(
    "--kubectl", is_flag=True, help="Print instead the kubectl command line that lists the objects that a plan needs."
)
def command(question: Question, out: Path | None, kubectl: bool) -> int:
    """Write policies and cluster into one file: redacted, canonical, with a digest. Every plan from this file is the
    same."""
    if kubectl:
        return _print_kubectl(question)
    checkup, cluster_view, inputs = answered(lambda: inputs_of(question))
    if cluster_view is None or inputs is None:
        return refused(checkup)
    print_cluster_warnings(cluster_view)
    content = dump.write(inputs)
    if out:
        replace_files({out: content}, mode=PRIVATE)
        nodes, pods = len(inputs.observed.nodes), len(inputs.observed.pods)
        click.echo(f"{out}: {nodes} nodes, {pods} pods, {len(content):,} bytes", err=True)
    else:
        click.echo(content, nl=False)
    return ExitCode.FINE


def _print_kubectl(question: Question) -> int:
    """Prints the kubectl command line for the given policies; without policies, for any policies."""
    if question.takes_dumped and not any(path.exists() for path in question.origins.paths):
        click.echo(kubectl_line((), (), question.place.namespace))
        return ExitCode.FINE
    if question.origins.resources:
        click.echo(kubectl_line((), ("--resources",), question.place.namespace))
        return ExitCode.FINE
    checkup = answered(lambda: check(question.origins, question.environment))
    if checkup.resolved.problems:
        return refused(checkup)
    wishes: tuple[Desired, ...] = checkup.resolved.wishes
    if question.environment:
        wishes = (answered(lambda: chosen(checkup.resolved, question.environment)),)
    click.echo(kubectl_line(wishes, _plan_options(question), question.place.namespace))
    return ExitCode.FINE


def _plan_options(question: Question) -> tuple[str, ...]:
    """Options with which `plan` finds the same policies."""
    origins = question.origins
    options: list[str] = []
    if origins.repository:
        options += ["--repo", origins.repository, "--revision", origins.revision]
    if not question.takes_dumped:
        options += [part for path in origins.paths for part in ("--policies", path.as_posix())]
    options += ["-e", question.environment] if question.environment else []
    return tuple(options)
