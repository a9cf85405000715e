"""`reconciler rbac`: the least rights that the policies need, to look and to act, what limits them, and people's."""

from typing import Any

import click

from reconciler import controller
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import namespace_option, origin_options
from reconciler.cli.stderr import refused
from reconciler.model.desired import Desired
from reconciler.policy.resolve import NotChosen, Resolved, chosen
from reconciler.schema.admission import admission_page
from reconciler.schema.rights.page import person_page, reading_page, writing_page
from reconciler.schema.rights.rules import PEOPLE, enforces


@click.command()
@origin_options
@click.option("-e", "--environment", help="For base, or for the overlay of this name; else for all of them.")
@click.option("--write", is_flag=True, help="Instead, what acting needs beside it.")
@click.option("--admission", is_flag=True, help="Instead, the admission policies that limit acting to these rights.")
@click.option("--resources", is_flag=True, help="With --write: the policies will be custom resources of the cluster.")
@click.option("--person", type=click.Choice(list(PEOPLE)), help="Instead, what a person needs to approve, say.")
@namespace_option
def command(origins: controller.Origins, environment: str | None, namespace: str, **asked: Any) -> int:
    """Print, as YAML, the rights that looking needs with the policies in PATHS. Without PATHS: with any policies."""
    if asked["person"]:
        return _of_a_person(asked, environment, namespace)
    wishes: tuple[Desired, ...] = ()
    if _names_policies():
        checkup = controller.check(origins, environment)
        if checkup.resolved.problems:
            return refused(checkup)
        for notice in checkup.notices:
            click.echo(f"note: {notice}", err=True)
        wishes = _wishes(checkup.resolved, environment)
    elif environment is not None:
        raise click.UsageError("an environment is one of some policies: name their PATHS, or --repo")
    click.echo(_page(asked, wishes, namespace), nl=False)
    return ExitCode.FINE


def _of_a_person(requested: dict[str, Any], environment: str | None, namespace: str) -> int:
    if (
        _names_policies()
        or environment is not None
        or any(requested[each] for each in ("write", "resources", "admission"))
    ):
        raise click.UsageError("what people need follows from no policies: leave out the rest")
    click.echo(person_page(requested["person"], namespace), nl=False)
    return ExitCode.FINE


def _page(requested: dict[str, Any], wishes: tuple[Desired, ...], namespace: str) -> str:
    if requested["admission"]:
        if requested["write"] or requested["resources"]:
            raise click.UsageError("--admission prints what limits all rights to act: leave out the rest")
        return admission_page(wishes, namespace)
    if not requested["write"]:
        if requested["resources"]:
            raise click.UsageError("--resources goes with --write: looking is the same either way")
        return reading_page(wishes, namespace)
    if wishes and not enforces(wishes):
        click.echo("note: no pool is in mode Enforce: this is only for what it keeps for itself", err=True)
    # For whatever policies there may be, they may be kept either way.
    return writing_page(
        wishes, namespace, resources=requested["resources"] if wishes or requested["resources"] else None
    )


def _names_policies() -> bool:
    """Elsewhere `policies` is taken for granted; rights for whatever policies there may be are an answer too."""
    given = click.get_current_context().params
    return bool(given["paths"] or given["repository"])


def _wishes(resolved: Resolved, environment: str | None) -> tuple[Desired, ...]:
    try:
        return (chosen(resolved, environment),) if environment is not None else resolved.wishes
    except NotChosen as error:
        raise click.UsageError(str(error)) from None
