"""`reconciler import`: policies and templates from the NodePools that a cluster has."""

import json
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import click
import msgspec

from reconciler import controller
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.files import AlreadyThere, write_all
from reconciler.cli.options import answered, cluster_options
from reconciler.importer.autoscaler.flags import Flags, NoFlags
from reconciler.importer.imported import NODE_POOLS, Imported, differences, imported
from reconciler.importer.text import ImportNote
from reconciler.model.cluster.observed import Observed
from reconciler.report.wording import visible


class ImportTarget(msgspec.Struct, frozen=True):
    """Where files go, and whether those that are there may be overwritten."""

    folder: Path
    force: bool


def _target(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets two of its options as `target`."""

    @wraps(command)
    def with_target(folder: Path, force: bool, **others: Any) -> Any:
        return command(target=ImportTarget(folder, force), **others)

    return with_target


@click.command()
@cluster_options
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Folder that gets policies/base/ and templates/.",
)
@click.option("--force", is_flag=True, help="Overwrite files that are there already.")
@click.option(
    "--cluster-autoscaler",
    "autoscaler",
    metavar="FILE|NAMESPACE/NAME",
    help="A Cluster Autoscaler's manifest, or its Deployment in the cluster: its flags become a DrainPolicy.",
)
@click.argument("names", nargs=-1, metavar="[POOL]...")
@_target
def command(
    place: controller.ClusterPlace, target: ImportTarget, autoscaler: str | None, names: tuple[str, ...]
) -> int:
    """Write policies that say what NodePools in the cluster are: those named POOL, or all that have GPUs.

    Each is adopted as it is, in mode Observe, such that none of its nodes drifts.
    """
    cluster_view = answered(lambda: controller.observed_cluster(place))
    for text in cluster_view.notes:
        _say(f"note: {text}")
    if not autoscaler:
        _require_observed(cluster_view.observed)
    found = imported(cluster_view.observed, names)
    for skipped in found.skipped:
        _say(f"note: NodePool/{skipped.name} is left out: {skipped.why}")
    if names and found.skipped:
        raise click.ClickException("nothing was written, because not all that was named can be imported")
    if autoscaler:
        found = found.with_drain_policy(_flags(place, autoscaler))
    if not found.files:
        pools = (
            "no NodePool with GPUs is without a policy"
            if cluster_view.observed.node_pools
            else "there are no NodePools"
        )
        _say(f"nothing to import: {pools}")
        return ExitCode.FINE
    checkup, policies = controller.check_bundle(found.bundle), (target.folder / "policies").as_posix()
    notes = (*found.notes, *_differences(checkup, cluster_view.observed))
    _write(target, found)
    for note in notes:
        _say(f"note: {target.folder / note.file}: {note.sentence}; {note.remedy}")
    if checkup.resolved.problems:
        _say(f"next: write what is not known yet, until `reconciler validate {policies}` finds no problem")
        return ExitCode.INVALID_POLICY
    _say(f"next: `reconciler plan --policies {policies}` shows what adopting them does")
    return ExitCode.FINE


def _flags(place: controller.ClusterPlace, autoscaler: str) -> Flags:
    try:
        return answered(lambda: controller.autoscaler_flags(place, autoscaler))
    except NoFlags as none:
        raise click.ClickException(f"nothing was written: {none}") from None


def _require_observed(observed: Observed) -> None:
    if why := observed.why_unread(NODE_POOLS):
        raise click.ClickException(f"without NodePools there is nothing to import: {why}")
    if NODE_POOLS in observed.absent:
        raise click.ClickException("the cluster has no Karpenter: it does not serve NodePools")


def _differences(checkup: controller.Checkup, observed: Observed) -> Iterator[ImportNote]:
    """What the policies would render otherwise than it stands in the cluster."""
    live = {pool.name: pool for pool in observed.node_pools}
    for wish in checkup.resolved.wishes:
        for manifest in wish.manifests:
            for field in differences(json.loads(manifest.body), live[manifest.name]):
                text = f"{field} of NodePool/{manifest.name} would not stay as it is"
                yield ImportNote(manifest.origin.file, text, "`reconciler plan` shows what that would do to its nodes")


def _write(target: ImportTarget, found: Imported) -> None:
    try:
        written = write_all(target.folder, found.files, target.force)
    except AlreadyThere as there:
        remedy = "nothing was written; name another folder with --to, or overwrite them with --force"
        raise click.ClickException(f"already there: {there}; {remedy}") from None
    except OSError as error:
        raise click.ClickException(f"nothing was written: {error}") from None
    for path in written:
        click.echo(path.as_posix())


def _say(text: str) -> None:
    click.echo(visible(text), err=True)
