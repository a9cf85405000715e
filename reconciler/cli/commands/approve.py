"""`reconciler approve`: one revision may pass a guard, up to ceilings, for a time."""

import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
import msgspec

from reconciler import wiring
from reconciler.cli.asking import answered
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.lasting import LastingType
from reconciler.kube.by_hand import NotWritten
from reconciler.model.fields import why_no_name
from reconciler.model.instant import Instant, timestamp
from reconciler.model.kinds.change_approval import ChangeApproval
from reconciler.model.kinds.change_guard import Ceiling
from reconciler.model.quantity import Duration

_BEGINNING = re.compile(r"[0-9a-f]{4,39}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,252}")
_COUNT = click.IntRange(0, 100_000)


class Terms(msgspec.Struct, frozen=True):
    """For which guard, how far, how long, and why."""

    guard: str
    ceilings: Ceiling
    expires: Duration
    reason: str


def _term_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets them as `terms`."""

    @wraps(command)
    def with_terms(guard: str, expires: Duration, reason: str, **given: Any) -> Any:
        ceilings = Ceiling(**{field: given.pop(field) for field in Ceiling.__struct_fields__})
        return command(terms=Terms(guard, ceilings, expires, reason), **given)

    for option in reversed(_OPTIONS):
        with_terms = option(with_terms)
    return with_terms


_OPTIONS = (
    click.option("--guard", metavar="NAME", required=True, help="The ChangeGuard that it may pass."),
    click.option("--removed-nodes", "max_removed_nodes", type=_COUNT, help="Empty nodes that it may remove."),
    click.option(
        "--removed-percent", "max_removed_percent", type=click.IntRange(0, 100), help="Percent of a pool, likewise."
    ),
    click.option(
        "--disrupted-gpus", "max_disrupted_gpus", type=click.IntRange(0, 1_000_000), help="GPUs in use, likewise."
    ),
    click.option(
        "--deleted-node-pools", "max_deleted_node_pools", type=click.IntRange(0, 1_000), help="NodePools, likewise."
    ),
    click.option("--expires", type=LastingType(), default="24h", show_default=True, help="How long it holds."),
    click.option("--reason", default="", help="Why, for whoever asks."),
)


@click.command()
@click.argument("revision")
@_term_options
@click.option("--repo", "repository", default=".", metavar="URL", help="Where an abbreviated commit is looked up.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
def command(revision: str, terms: Terms, repository: str, context: str | None) -> int:
    """Let plans of REVISION pass a guard, within the ceilings that are given: each plan of it, however the fleet moves,
    and no other revision's. Limits that are not named stay. It takes the right to make a ChangeApproval."""
    if why := why_no_name(terms.guard):
        raise click.UsageError(f'"{terms.guard}" is no name: write {why}')
    if terms.ceilings == Ceiling():
        raise click.UsageError("say how far, as in --removed-nodes 40: a ChangeApproval without ceilings lifts nothing")
    ends = Instant((wiring.current_instant() + terms.expires.milliseconds) // 1000 * 1000)
    approval = ChangeApproval(
        guard_name=terms.guard,
        revision=_whole(revision, repository),
        ceilings=terms.ceilings,
        expires=timestamp(ends),
        reason=terms.reason,
    )
    try:
        name = answered(lambda: wiring.approve(context, approval))
    except NotWritten as wrong:
        raise click.ClickException(str(wrong)) from None
    told = f"ChangeApproval/{name}: plans of {approval.revision} may pass guard {terms.guard} until {approval.expires}"
    click.echo(f"{told}, within {_ceilings(terms.ceilings)}")
    click.echo(f"note: kubectl delete changeapproval {name} takes it back", err=True)
    return ExitCode.FINE


def _whole(revision: str, repository: str) -> str:
    """A commit's whole id: what begins alike may be another, and could be made to be."""
    if not _REVISION.fullmatch(revision):
        raise click.UsageError(f'"{revision}" is no revision: write one as plan tells it')
    if not _BEGINNING.fullmatch(revision):
        return revision
    found = wiring.read(wiring.Origins((Path(),), repository, revision)).revision
    if not found.startswith(revision):
        told = f"{revision} is the beginning of a commit's id, and {repository} has no such commit"
        raise click.UsageError(f"{told}: name a repository that has, with --repo, or write the whole id")
    return found


def _ceilings(ceilings: Ceiling) -> str:
    words = (
        (ceilings.max_removed_nodes, "removed nodes"),
        (ceilings.max_removed_percent, "removed percent of a pool"),
        (ceilings.max_disrupted_gpus, "disrupted GPUs"),
        (ceilings.max_deleted_node_pools, "deleted NodePools"),
    )
    return ", ".join(f"{count} {noun}" for count, noun in words if count is not None)
