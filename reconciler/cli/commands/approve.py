"""`reconciler approve`: what policies cause may pass a guard, up to ceilings and for a time; objects may be lost."""

import json
import re
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from reconciler import controller
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import LastingType, answered
from reconciler.cli.stderr import refused
from reconciler.controller import Checkup, ClusterPlace, Origins
from reconciler.kube.cluster import NotWritten, approval_manifest
from reconciler.model.desired import Desired
from reconciler.model.fields import why_no_name
from reconciler.model.instant import Instant, timestamp
from reconciler.model.policy.guards import ApprovedKind, ApprovedObject, Ceiling, ChangeApproval
from reconciler.model.quantity import Duration
from reconciler.plan.guards.approvals import SHOWN, policy_digest

_BEGINNING = re.compile(r"[0-9a-f]{4,39}")
_REVISION = re.compile(r"[0-9a-f]{4,64}|[a-z]+:[0-9a-f]{64}")  # a commit, dir:…, resources:…
_LOST = re.compile(r"[A-Za-z][A-Za-z0-9]*(/[a-z0-9][-a-z0-9.]*){1,2}")
_KINDS: tuple[ApprovedKind, ...] = get_args(ApprovedKind)
_COUNT = click.IntRange(0, 100_000)


class ApprovalTerms(msgspec.Struct, frozen=True):
    """For which guard, how far, how long, and why."""

    guard: str
    ceilings: Ceiling
    expires: Duration
    reason: str
    prune: tuple[str, ...]


class ApprovalTarget(msgspec.Struct, frozen=True):
    """Where the policies are, of which environment they are meant, and in which cluster it is approved."""

    origins: Origins
    environment: str | None
    context: str | None


class _InvalidPolicies(Exception):
    """Policies with problems are not approved."""

    def __init__(self, checkup: Checkup) -> None:
        super().__init__()
        self.checkup = checkup


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets them as `terms` and `place`."""

    @wraps(command)
    def with_values(**given: Any) -> Any:
        ceilings = Ceiling(**{field: given.pop(field) for field in Ceiling.__struct_fields__})
        terms = ApprovalTerms(
            ceilings=ceilings, **{field: given.pop(field) for field in ("guard", "expires", "reason", "prune")}
        )
        paths = given.pop("policies") or (Path("policies"),)
        origins = Origins(paths, given.pop("repository"), given.pop("revision"), given.pop("resources"))
        place = ApprovalTarget(origins, given.pop("environment"), given.pop("context"))
        return command(terms=terms, place=place, **given)

    for option in reversed(_OPTIONS):
        with_values = option(with_values)
    return with_values


_OPTIONS = (
    click.option("--guard", metavar="NAME", default="", help="The ChangeGuard that is passed."),
    click.option("--removed-nodes", "max_removed_nodes", type=_COUNT, help="Empty nodes that may be removed."),
    click.option(
        "--removed-percent", "max_removed_percent", type=click.IntRange(0, 100), help="Percent of a pool, likewise."
    ),
    click.option(
        "--disrupted-gpus", "max_disrupted_gpus", type=click.IntRange(0, 1_000_000), help="GPUs in use, likewise."
    ),
    click.option(
        "--deleted-node-pools", "max_deleted_node_pools", type=click.IntRange(0, 1_000), help="NodePools, likewise."
    ),
    click.option(
        "--prune",
        metavar="KIND/NAME",
        multiple=True,
        help="An object that may be deleted once no policy declares it: NodePool/old.",
    ),
    click.option("--expires", type=LastingType(), default="24h", show_default=True, help="How long it holds."),
    click.option("--reason", default="", help="Why, for whoever asks."),
    click.option(
        "--policies",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="PATH",
        help="Where the policies are, where that is not policies.",
    ),
    click.option("--repo", "repository", default="", metavar="URL", help="The repository that they are in."),
    click.option("--revision", default="HEAD", show_default=True, metavar="REV", help="Its revision."),
    click.option("--resources", is_flag=True, help="They are custom resources of the cluster."),
    click.option("-e", "--environment", help="base, or the name of an overlay; needed where there are several."),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
)
_DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Print the ChangeApproval, for kubectl create -f -, and write nothing."
)


@click.command()
@click.argument("approved", nargs=-1, metavar="[KIND/NAME]...")
@_options
@_DRY_RUN
def command(approved: tuple[str, ...], terms: ApprovalTerms, place: ApprovalTarget, *, dry_run: bool) -> int:
    """Let what the policies KIND/NAME cause pass a guard, within the ceilings that are given.

    Each policy is approved by a digest of its spec and rendering, as they are now in the files, the repository or the
    cluster that is named. It stays approved over rebases, squash merges and other commits, until its content changes or
    the approval expires. Limits that are not named stay. With --prune, objects may be lost that no policy declares any
    more. A revision, in the place of KIND/NAME, approves all that this very revision causes.

    It takes the right to make a ChangeApproval: see `reconciler rbac --person approver`.
    """
    _check(approved, terms)
    try:
        spec = answered(lambda: _approval(approved, terms, place))
    except _InvalidPolicies as invalid:
        return refused(invalid.checkup)
    if dry_run:
        click.echo(json.dumps(approval_manifest(spec), indent=2))
        return ExitCode.FINE
    try:
        name = answered(lambda: controller.approve(place.context, spec))
    except NotWritten as error:
        raise click.ClickException(str(error)) from None
    for sentence in _sentences(spec):
        click.echo(f"ChangeApproval/{name}: {sentence}")
    if spec.objects:
        click.echo("note: of a policy whose content changes nothing is approved any more", err=True)
    click.echo(f"note: kubectl delete changeapproval {name} takes it back", err=True)
    return ExitCode.FINE


def _check(approved: tuple[str, ...], terms: ApprovalTerms) -> None:
    if not approved and not terms.prune:
        raise click.UsageError("say what is approved: KIND/NAME of a policy, or --prune KIND/NAME of what may be lost")
    for title in terms.prune:
        if not _LOST.fullmatch(title):
            raise click.UsageError(f'"{title}" names no object; write KIND/NAME, as plan tells it')
    if not terms.guard:
        if approved or terms.ceilings != Ceiling():
            raise click.UsageError("name the guard that is passed, with --guard NAME")
        return
    if why := why_no_name(terms.guard):
        raise click.UsageError(f'"{terms.guard}" is no name: write {why}')
    if terms.ceilings == Ceiling():
        raise click.UsageError("say how far, as in --removed-nodes 40: without ceilings no limit of a guard is lifted")


def _approval(approved: tuple[str, ...], terms: ApprovalTerms, place: ApprovalTarget) -> ChangeApproval:
    """Raises _InvalidPolicies, NotChosen, OSError and UsageError."""
    ends = Instant((controller.current_instant() + terms.expires.milliseconds) // 1000 * 1000)
    whole_revision = approved[0] if len(approved) == 1 and _key(approved[0]) is None else None
    return ChangeApproval(
        guard_name=terms.guard or None,
        objects=[] if whole_revision else _objects(approved, terms.guard, place),
        prune=sorted(set(terms.prune)),
        revision=_whole(whole_revision, place.origins.repository or ".") if whole_revision else None,
        ceilings=terms.ceilings,
        expires=timestamp(ends),
        reason=terms.reason,
    )


def _key(title: str) -> tuple[ApprovedKind, str] | None:
    """GpuPool/a100; None of what names no policy."""
    kind, _, name = title.partition("/")
    found = next((each for each in _KINDS if each == kind), None)
    return (found, name) if found and name else None


def _objects(approved: Sequence[str], guard: str, place: ApprovalTarget) -> list[ApprovedObject]:
    if not approved:
        return []
    keys = []
    for title in dict.fromkeys(approved):
        key = _key(title)
        if key is None:
            raise click.UsageError(f'"{title}" names no policy; write KIND/NAME, with a kind of {", ".join(_KINDS)}')
        keys.append(key)
    desired = _desired(place)
    if guard not in {each.name for each in desired.guards}:
        known = ", ".join(each.name for each in desired.guards) or "none"
        raise click.UsageError(
            f"there is no ChangeGuard/{guard} in environment {desired.environment}; there is: {known}"
        )
    return [_object(desired, *key) for key in sorted(keys)]


def _object(desired: Desired, kind: ApprovedKind, name: str) -> ApprovedObject:
    digest = policy_digest(desired, kind, name)
    if digest is None:
        known = ", ".join(each.name for each in desired.declared if each.kind == kind) or "none"
        text = f"there is no {kind}/{name} in environment {desired.environment} of {desired.revision}"
        raise click.UsageError(f"{text}; there is: {known}")
    return ApprovedObject(kind=kind, name=name, digest=digest)


def _desired(place: ApprovalTarget) -> Desired:
    cluster = ClusterPlace(None, False, place.context)
    checkup = controller.checked(place.origins, cluster, place.environment)
    if checkup.resolved.problems:
        raise _InvalidPolicies(checkup)
    return controller.chosen(checkup.resolved, place.environment)


def _whole(revision: str, repository: str) -> str:
    """A commit's whole id: what begins alike may be another, and could be made to be."""
    if not _REVISION.fullmatch(revision):
        raise click.UsageError(
            f'"{revision}" is no policy and no revision: write KIND/NAME, with a kind of {", ".join(_KINDS)}, or a '
            "revision as plan -o json tells it: a commit, or dir: and 64 digits"
        )
    if not _BEGINNING.fullmatch(revision):
        return revision
    result = controller.read(controller.Origins((Path(),), repository, revision)).revision
    if not result.startswith(revision):
        status = f"{revision} is the beginning of a commit's id, and {repository} has no such commit"
        raise click.UsageError(f"{status}: name a repository that has, with --repo, or write the whole id")
    return result


def _sentences(spec: ChangeApproval) -> Sequence[str]:
    """What is approved, for people; digests are shown in short."""
    lines = []
    if spec.objects:
        what = ", ".join(f"{each.kind}/{each.name} ({each.digest[:SHOWN]})" for each in spec.objects)
        lines.append(f"what {what} {'cause' if len(spec.objects) > 1 else 'causes'} may pass guard {spec.guard_name}")
    if spec.revision:
        lines.append(f"plans of {spec.revision} may pass guard {spec.guard_name}")
    within = f", within {_ceilings(spec.ceilings)}" if spec.ceilings != Ceiling() else ""
    lines = [f"{each} until {spec.expires}{within}" for each in lines]
    if spec.prune:
        once = f"once no policy declares {'them' if len(spec.prune) > 1 else 'it'}"
        passing = f", and may pass guard {spec.guard_name}{within}" if spec.guard_name else ""
        lines.append(f"{', '.join(spec.prune)} may be deleted until {spec.expires}, {once}{passing}")
    return lines


def _ceilings(ceilings: Ceiling) -> str:
    words = (
        (ceilings.max_removed_nodes, "removed nodes"),
        (ceilings.max_removed_percent, "removed percent of a pool"),
        (ceilings.max_disrupted_gpus, "disrupted GPUs"),
        (ceilings.max_deleted_node_pools, "deleted NodePools"),
    )
    return ", ".join(f"{count} {noun}" for count, noun in words if count is not None)
