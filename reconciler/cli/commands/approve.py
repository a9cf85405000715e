"""`reconciler approve`: creates a ChangeApproval, which lets changes of policies pass a guard within ceilings, for a
time."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import DURATION, OBJECT, answered, kubeconfig_option, resources_option, revision_option
from reconciler.cli.stderr import refused
from reconciler.controller.cluster import ClusterPlace, current_instant
from reconciler.controller.dry_run import checked
from reconciler.controller.policies import Checkup, Origins, read
from reconciler.controller.user_writes import approve
from reconciler.kube.cluster import NotWritten, approval_manifest
from reconciler.model.desired import Desired
from reconciler.model.fields import why_no_name
from reconciler.model.instant import Instant, timestamp
from reconciler.model.policy.guards import ApprovedKind, ApprovedObject, Ceiling, ChangeApproval
from reconciler.model.quantity import Duration
from reconciler.plan.guards.approvals import SHOWN, policy_digest
from reconciler.policy.resolve import chosen

_BEGINNING = re.compile(r"[0-9a-f]{4,39}")
_REVISION = re.compile(r"[0-9a-f]{4,64}|[a-z]+:[0-9a-f]{64}")  # a commit, dir:…, resources:…
_KINDS: tuple[ApprovedKind, ...] = get_args(ApprovedKind)
_COUNT = click.IntRange(0, 100_000)


class ApprovalRequest(msgspec.Struct, frozen=True):
    """Terms of an approval, its policies, and the cluster that gets the approval."""

    guard: str
    ceilings: Ceiling
    expires: Duration
    reason: str
    prune: tuple[str, ...]
    origins: Origins
    environment: str | None
    context: str | None


class _InvalidPolicies(Exception):
    def __init__(self, checkup: Checkup) -> None:
        super().__init__()
        self.checkup = checkup


@click.command()
@click.argument("approved", nargs=-1, metavar="[KIND/NAME]...")
@click.option("--guard", metavar="NAME", default="", help="Name of the ChangeGuard whose limits the approval raises.")
@click.option("--removed-nodes", "max_removed_nodes", type=_COUNT, help="Ceiling for removed empty nodes.")
@click.option(
    "--removed-percent",
    "max_removed_percent",
    type=click.IntRange(0, 100),
    help="Ceiling for removed nodes, in percent of a pool.",
)
@click.option(
    "--disrupted-gpus",
    "max_disrupted_gpus",
    type=click.IntRange(0, 1_000_000),
    help="Ceiling for disrupted GPUs in use.",
)
@click.option(
    "--deleted-node-pools",
    "max_deleted_node_pools",
    type=click.IntRange(0, 1_000),
    help="Ceiling for deleted NodePools.",
)
@click.option(
    "--prune",
    type=OBJECT,
    metavar="KIND/NAME",
    multiple=True,
    help="An object that may be deleted when no policy declares it, such as NodePool/old.",
)
@click.option("--expires", type=DURATION, default="24h", show_default=True, help="How long the approval is valid.")
@click.option("--reason", default="", help="Reason, recorded in the approval.")
@click.option(
    "--policies",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="PATH",
    help="Path of the policies.  [default: policies]",
)
@click.option("--repo", "repository", default="", metavar="URL", help="Git repository with the policies.")
@revision_option
@resources_option
@click.option("-e", "--environment", help="base, or the name of an overlay; required if there are several.")
@kubeconfig_option
@click.option("--dry-run", is_flag=True, help="Only print the ChangeApproval, for kubectl create -f -.")
def command(approved: tuple[str, ...], *, dry_run: bool, **given: Any) -> int:
    """Allow the changes that the policies KIND/NAME cause to exceed the limits of a guard, up to the given ceilings.

    The approval contains a digest of each policy: of its spec and of its rendered manifests, as read from the files,
    the repository or the cluster. The approval survives rebases, squash merges and other commits, until the content of
    the policy changes or the approval expires. A limit of the guard for which no ceiling is given stays in force.
    --prune allows deletion of objects that no policy declares any more. A revision in place of KIND/NAME approves all
    changes that exactly this revision causes.

    The command needs the right to create ChangeApprovals: see `reconciler rbac --person approver`.
    """
    ceilings = Ceiling(**{field: given.pop(field) for field in Ceiling.__struct_fields__})
    paths = given.pop("policies") or (Path("policies"),)
    origins = Origins(paths, given.pop("repository"), given.pop("revision"), given.pop("resources"))
    request = ApprovalRequest(ceilings=ceilings, origins=origins, **given)
    _check(approved, request)
    try:
        spec = answered(lambda: _approval(approved, request))
    except _InvalidPolicies as invalid:
        return refused(invalid.checkup)
    if dry_run:
        click.echo(json.dumps(approval_manifest(spec), indent=2))
        return ExitCode.FINE
    name = answered(lambda: approve(request.context, spec), NotWritten)
    for sentence in _sentences(spec):
        click.echo(f"ChangeApproval/{name}: {sentence}")
    if spec.objects:
        click.echo("note: the approval of a policy ends when its content changes", err=True)
    click.echo(f"note: kubectl delete changeapproval {name} revokes the approval", err=True)
    return ExitCode.FINE


def _check(approved: tuple[str, ...], request: ApprovalRequest) -> None:
    if not approved and not request.prune:
        raise click.UsageError(
            "name what to approve: KIND/NAME of a policy, or --prune KIND/NAME of an object that may be deleted"
        )
    if not request.guard:
        if approved or request.ceilings != Ceiling():
            raise click.UsageError("add --guard NAME: the ChangeGuard whose limits the approval raises")
        return
    if why := why_no_name(request.guard):
        raise click.UsageError(f'"{request.guard}" is not a valid name: write {why}')
    if request.ceilings == Ceiling():
        raise click.UsageError(
            "give a ceiling, such as --removed-nodes 40: an approval without ceilings lifts no limit"
        )


def _approval(approved: tuple[str, ...], request: ApprovalRequest) -> ChangeApproval:
    """Raises _InvalidPolicies, NotChosen, OSError and UsageError."""
    ends = Instant((current_instant() + request.expires.milliseconds) // 1000 * 1000)
    whole_revision = approved[0] if len(approved) == 1 and _key(approved[0]) is None else None
    return ChangeApproval(
        guard_name=request.guard or None,
        objects=[] if whole_revision else _objects(approved, request),
        prune=sorted(set(request.prune)),
        revision=_whole(whole_revision, request.origins.repository or ".") if whole_revision else None,
        ceilings=request.ceilings,
        expires=timestamp(ends),
        reason=request.reason,
    )


def _key(title: str) -> tuple[ApprovedKind, str] | None:
    """GpuPool/a100 as kind and name; None if the title names no policy."""
    kind, _, name = title.partition("/")
    found = next((each for each in _KINDS if each == kind), None)
    return (found, name) if found and name else None


def _objects(approved: Sequence[str], request: ApprovalRequest) -> list[ApprovedObject]:
    if not approved:
        return []
    keys = []
    for title in dict.fromkeys(approved):
        key = _key(title)
        if key is None:
            raise click.UsageError(
                f'"{title}" is not the name of a policy; write KIND/NAME, with a kind of {", ".join(_KINDS)}'
            )
        keys.append(key)
    desired = _desired(request)
    if request.guard not in {each.name for each in desired.guards}:
        known = ", ".join(each.name for each in desired.guards) or "none"
        raise click.UsageError(
            f"there is no ChangeGuard/{request.guard} in environment {desired.environment}; found: {known}"
        )
    return [_object(desired, *key) for key in sorted(keys)]


def _object(desired: Desired, kind: ApprovedKind, name: str) -> ApprovedObject:
    digest = policy_digest(desired, kind, name)
    if digest is None:
        known = ", ".join(each.name for each in desired.declared if each.kind == kind) or "none"
        text = f"there is no {kind}/{name} in environment {desired.environment} of {desired.revision}"
        raise click.UsageError(f"{text}; found: {known}")
    return ApprovedObject(kind=kind, name=name, digest=digest)


def _desired(request: ApprovalRequest) -> Desired:
    cluster = ClusterPlace(None, False, request.context)
    checkup = checked(request.origins, cluster, request.environment)
    if checkup.resolved.problems:
        raise _InvalidPolicies(checkup)
    return chosen(checkup.resolved, request.environment)


def _whole(revision: str, repository: str) -> str:
    """Full id of a commit. A prefix may match another commit, or be forged."""
    if not _REVISION.fullmatch(revision):
        raise click.UsageError(
            f'"{revision}" is neither a policy nor a revision: write KIND/NAME with kind {", ".join(_KINDS)}, or a '
            "revision as printed by plan -o json: a commit id, or dir: and 64 hexadecimal digits"
        )
    if not _BEGINNING.fullmatch(revision):
        return revision
    result = read(Origins((Path(),), repository, revision)).revision
    if not result.startswith(revision):
        status = f"{revision} is a prefix of a commit id, and {repository} has no such commit"
        raise click.UsageError(f"{status}: name a repository with this commit with --repo, or write the full id")
    return result


def _sentences(spec: ChangeApproval) -> Sequence[str]:
    lines = []
    if spec.objects:
        what = ", ".join(f"{each.kind}/{each.name} ({each.digest[:SHOWN]})" for each in spec.objects)
        lines.append(
            f"changes that {what} {'cause' if len(spec.objects) > 1 else 'causes'} may pass guard {spec.guard_name}"
        )
    if spec.revision:
        lines.append(f"plans of {spec.revision} may pass guard {spec.guard_name}")
    within = f", within {_ceilings(spec.ceilings)}" if spec.ceilings != Ceiling() else ""
    lines = [f"{each} until {spec.expires}{within}" for each in lines]
    if spec.prune:
        once = f"when no policy declares {'them' if len(spec.prune) > 1 else 'it'}"
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
