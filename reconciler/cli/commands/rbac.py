"""`reconciler rbac`: prints the minimal rights that the policies need to observe and to act, admission policies that
enforce these limits, and rights for people."""

from typing import Any

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import answered, namespace_option, origin_options
from reconciler.cli.stderr import refused
from reconciler.controller.policies import Origins, check
from reconciler.model.desired import Desired
from reconciler.policy.resolve import chosen
from reconciler.schema.admission import admission_page
from reconciler.schema.rights.page import (
    agents_page,
    extender_page,
    person_page,
    reading_page,
    webhook_page,
    writing_page,
)
from reconciler.schema.rights.rules import PEOPLE, enforces

_ENDPOINTS = {"webhook": webhook_page, "extender": extender_page, "agents": agents_page}
_PAGES = ("write", "resources", "admission", *_ENDPOINTS)


@click.command()
@origin_options
@click.option("-e", "--environment", help="base, or the name of an overlay; by default all environments.")
@click.option("--write", is_flag=True, help="Print instead the additional rights that mode Enforce needs.")
@click.option(
    "--admission", is_flag=True, help="Print instead admission policies that deny all writes beyond these rights."
)
@click.option("--webhook", is_flag=True, help="Print instead the additional rights of the admission webhook.")
@click.option("--extender", is_flag=True, help="Print instead the additional rights of the scheduler extender.")
@click.option("--agents", is_flag=True, help="Print instead the additional rights to answer agents of elastic pods.")
@click.option("--resources", is_flag=True, help="With --write: policies are custom resources of the cluster.")
@click.option(
    "--person",
    type=click.Choice(list(PEOPLE)),
    help="Print instead the rights that a person needs, for example to approve.",
)
@namespace_option
def command(origins: Origins, environment: str | None, namespace: str, **asked: Any) -> int:
    """Print, as YAML, the rights that mode Observe needs for the policies in PATHS. Without PATHS, print the rights for
    all possible policies."""
    if asked["person"]:
        return _of_a_person(asked, environment, namespace)
    wishes: tuple[Desired, ...] = ()
    if _names_policies():
        checkup = check(origins, environment)
        if checkup.resolved.problems:
            return refused(checkup)
        for notice in checkup.notices:
            click.echo(f"note: {notice}", err=True)
        wishes = checkup.resolved.wishes
        if environment is not None:
            wishes = (answered(lambda: chosen(checkup.resolved, environment)),)
    elif environment is not None:
        raise click.UsageError("--environment requires policies: name their PATHS, or --repo")
    click.echo(_page(asked, wishes, namespace), nl=False)
    return ExitCode.FINE


def _of_a_person(requested: dict[str, Any], environment: str | None, namespace: str) -> int:
    if _names_policies() or environment is not None or any(requested[each] for each in _PAGES):
        raise _alone("person")
    click.echo(person_page(requested["person"], namespace), nl=False)
    return ExitCode.FINE


def _page(requested: dict[str, Any], wishes: tuple[Desired, ...], namespace: str) -> str:
    for option, page in _ENDPOINTS.items():
        if requested[option]:
            if wishes or any(requested[each] for each in _PAGES if each != option):
                raise _alone(option)
            return page(namespace)
    if requested["admission"]:
        if requested["write"] or requested["resources"]:
            raise click.UsageError("--admission cannot be combined with --write or --resources: it covers all writes")
        return admission_page(wishes, namespace)
    if not requested["write"]:
        if requested["resources"]:
            raise click.UsageError(
                "--resources requires --write: the rights of mode Observe do not depend on --resources"
            )
        return reading_page(wishes, namespace)
    if wishes and not enforces(wishes):
        click.echo("note: no pool is in mode Enforce: these rights only cover the controller's own objects", err=True)
    # Without policies, include the rights for both places of policies.
    resources = requested["resources"] if wishes or requested["resources"] else None
    return writing_page(wishes, namespace, resources=resources)


def _alone(option: str) -> click.UsageError:
    others = ", ".join(f"--{each}" for each in _PAGES if each != option)
    return click.UsageError(f"--{option} cannot be combined with {others}, --repo, --environment or PATHS")


def _names_policies() -> bool:
    """Whether policies are named. Other commands default to `policies`; here no policies means any policies."""
    given = click.get_current_context().params
    return bool(given["paths"] or given["repository"])
