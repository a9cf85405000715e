"""`reconciler import`: writes policies and templates for the NodePools of a cluster."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.files import AlreadyThere, write_all
from reconciler.cli.options import answered, cluster_options
from reconciler.controller.cluster import ClusterPlace, autoscaler_flags, observed_cluster
from reconciler.controller.policies import Checkup, check_bundle
from reconciler.importer.autoscaler import Flags, NoFlags
from reconciler.importer.imported import NODE_POOLS, Imported, differences, imported
from reconciler.importer.text import ImportNote
from reconciler.model.cluster.observed import Observed
from reconciler.report.wording import visible
from reconciler.sources.input_file import default_template


@click.command()
@cluster_options
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Folder for policies/base/ and templates/.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option(
    "--cluster-autoscaler",
    "autoscaler",
    metavar="FILE|NAMESPACE/NAME",
    help="Manifest of a Cluster Autoscaler, or its Deployment in the cluster: converts its flags to a DrainPolicy.",
)
@click.argument("names", nargs=-1, metavar="[POOL]...")
def command(place: ClusterPlace, folder: Path, force: bool, autoscaler: str | None, names: tuple[str, ...]) -> int:
    """Write policies that match the NodePools in the cluster: the named POOLs, or all NodePools with GPUs.

    Each NodePool is adopted unchanged, in mode Observe, so that none of its nodes drifts.
    """
    cluster_view = answered(lambda: observed_cluster(place))
    for text in cluster_view.notes:
        _say(f"note: {text}")
    if not autoscaler:
        _require_observed(cluster_view.observed)
    found = imported(cluster_view.observed, default_template("node_pool.yaml.j2"), names)
    for skipped in found.skipped:
        _say(f"note: NodePool/{skipped.name} is skipped: {skipped.why}")
    if names and found.skipped:
        raise click.ClickException("nothing was written: not every named NodePool can be imported")
    if autoscaler:
        found = found.with_drain_policy(_flags(place, autoscaler))
    if not found.files:
        pools = (
            "every NodePool with GPUs already has a policy"
            if cluster_view.observed.node_pools
            else "the cluster has no NodePools"
        )
        _say(f"nothing to import: {pools}")
        return ExitCode.FINE
    checkup, policies = check_bundle(found.bundle), (folder / "policies").as_posix()
    notes = (*found.notes, *_differences(checkup, cluster_view.observed))
    _write(folder, found, force)
    for note in notes:
        _say(f"note: {folder / note.file}: {note.sentence}; {note.remedy}")
    if checkup.resolved.problems:
        _say(f"next: fill in the unknown values until `reconciler validate {policies}` finds no problem")
        return ExitCode.INVALID_POLICY
    _say(f"next: `reconciler plan --policies {policies}` shows the effect of adopting the NodePools")
    return ExitCode.FINE


def _flags(place: ClusterPlace, autoscaler: str) -> Flags:
    try:
        return answered(lambda: autoscaler_flags(place, autoscaler))
    except NoFlags as none:
        raise click.ClickException(f"nothing was written: {none}") from None


def _require_observed(observed: Observed) -> None:
    if why := observed.why_unread(NODE_POOLS):
        raise click.ClickException(f"nothing to import: NodePools could not be read: {why}")
    if NODE_POOLS in observed.absent:
        raise click.ClickException("the cluster does not serve NodePools: Karpenter is not installed")


def _differences(checkup: Checkup, observed: Observed) -> Iterator[ImportNote]:
    """Fields that the policies would render differently from the cluster."""
    live = {pool.name: pool for pool in observed.node_pools}
    for wish in checkup.resolved.wishes:
        for manifest in wish.manifests:
            for field in differences(json.loads(manifest.body), live[manifest.name]):
                text = f"{field} of NodePool/{manifest.name} would change"
                yield ImportNote(manifest.origin.file, text, "`reconciler plan` shows the effect on its nodes")


def _write(folder: Path, found: Imported, force: bool) -> None:
    try:
        written = write_all(folder, found.files, force)
    except AlreadyThere as there:
        remedy = "nothing was written; choose another folder with --to, or overwrite with --force"
        raise click.ClickException(f"files exist: {there}; {remedy}") from None
    except OSError as error:
        raise click.ClickException(f"nothing was written: {error}") from None
    for path in written:
        click.echo(path.as_posix())


def _say(text: str) -> None:
    click.echo(visible(text), err=True)
