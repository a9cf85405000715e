"""`reconciler rbac`: the least rights that the policies need, to look, and apart from that to write."""

import re

import click

from reconciler import wiring
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.origins import origin_options
from reconciler.cli.telling import refused
from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.model.fields import NAMESPACE
from reconciler.policy.environments import NotChosen, chosen
from reconciler.policy.published.rights.page import reading_page, writing_page
from reconciler.policy.resolve import Resolved


@click.command()
@origin_options
@click.option("-e", "--environment", help="For base, or for the overlay of this name; else for all of them.")
@click.option("--write", is_flag=True, help="Instead, what pools in mode Enforce need beside it, to write.")
@click.option(
    "--namespace", default=names.OWN_NAMESPACE, show_default=True, metavar="NAME", help="Where the reconciler runs."
)
def command(origins: wiring.Origins, environment: str | None, write: bool, namespace: str) -> int:
    """Print, as YAML, the rights that looking needs with the policies in PATHS. Without PATHS: with any policies."""
    if not re.fullmatch(NAMESPACE.pattern, namespace):
        raise click.UsageError(f'"{namespace}" is no namespace: write {NAMESPACE.words}')
    wishes: tuple[Desired, ...] = ()
    if _names_policies():
        checkup = wiring.check(origins)
        if checkup.resolved.problems:
            return refused(checkup)
        for notice in checkup.notices:
            click.echo(f"note: {notice}", err=True)
        wishes = _wishes(checkup.resolved, environment)
    elif environment is not None:
        raise click.UsageError("an environment is one of some policies: name their PATHS, or --repo")
    page = (writing_page if write else reading_page)(wishes, namespace)
    if not page:
        click.echo("note: no pool is in mode Enforce, so that nothing needs to be written", err=True)
    click.echo(page, nl=False)
    return ExitCode.FINE


def _names_policies() -> bool:
    """Elsewhere `policies` is taken for granted; rights for whatever policies there may be are an answer too."""
    given = click.get_current_context().params
    return bool(given["paths"] or given["repository"])


def _wishes(resolved: Resolved, environment: str | None) -> tuple[Desired, ...]:
    try:
        return (chosen(resolved, environment),) if environment is not None else resolved.wishes
    except NotChosen as wrong:
        raise click.UsageError(str(wrong)) from None
