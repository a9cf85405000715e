"""`reconciler import`: policies and templates from the NodePools that a cluster has."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from reconciler import wiring
from reconciler.cli.asking import answered
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.new_files import AlreadyThere, write_all
from reconciler.cli.sight import cluster_options
from reconciler.model.cluster.observed import Observed
from reconciler.policy.importing.differences import differences
from reconciler.policy.importing.imported import NODE_POOLS, Imported, imported
from reconciler.policy.importing.notes import Note
from reconciler.report.visible import visible


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
@click.argument("names", nargs=-1, metavar="[POOL]...")
def command(place: wiring.ClusterPlace, folder: Path, force: bool, names: tuple[str, ...]) -> int:
    """Write policies that say what NodePools in the cluster are: those named POOL, or all that have GPUs.

    Each is adopted as it is, in mode Observe, such that none of its nodes drifts.
    """
    sight = answered(lambda: wiring.observed_cluster(place))
    for told in sight.notes:
        _say(f"note: {told}")
    _must_be_seen(sight.observed)
    found = imported(sight.observed, names)
    for skipped in found.skipped:
        _say(f"note: NodePool/{skipped.name} is left out: {skipped.why}")
    if names and found.skipped:
        raise click.ClickException("nothing was written, because not all that was named can be imported")
    if not found.files:
        pools = "no NodePool with GPUs is without a policy" if sight.observed.node_pools else "there are no NodePools"
        _say(f"nothing to import: {pools}")
        return ExitCode.FINE
    checkup = wiring.check_bundle(found.bundle)
    notes = (*found.notes, *_differences(checkup, sight.observed))
    _write(folder, found, force)
    for note in notes:
        _say(f"note: {folder / note.file}: {note.sentence}; {note.remedy}")
    if checkup.resolved.problems:
        _say(f"next: write what is not known yet, until `reconciler validate {_policies(folder)}` finds no problem")
        return ExitCode.INVALID_POLICY
    _say(f"next: `reconciler plan --policies {_policies(folder)}` shows what adopting them does")
    return ExitCode.FINE


def _must_be_seen(observed: Observed) -> None:
    if why := observed.why_unread(NODE_POOLS):
        raise click.ClickException(f"without NodePools there is nothing to import: {why}")
    if NODE_POOLS in observed.absent:
        raise click.ClickException("the cluster has no Karpenter: it does not serve NodePools")


def _differences(checkup: wiring.Checkup, observed: Observed) -> Iterator[Note]:
    """What the policies would render otherwise than it stands in the cluster."""
    live = {pool.name: pool for pool in observed.node_pools}
    for wish in checkup.resolved.wishes:
        for manifest in wish.manifests:
            for field in differences(json.loads(manifest.body), live[manifest.name]):
                told = f"{field} of NodePool/{manifest.name} would not stay as it is"
                yield Note(manifest.origin.file, told, "`reconciler plan` shows what that would do to its nodes")


def _write(folder: Path, found: Imported, force: bool) -> None:
    try:
        written = write_all(folder, found.files, force)
    except AlreadyThere as there:
        remedy = "nothing was written; name another folder with --to, or overwrite them with --force"
        raise click.ClickException(f"already there: {there}; {remedy}") from None
    except OSError as wrong:
        raise click.ClickException(f"nothing was written: {wrong}") from None
    for path in written:
        click.echo(path.as_posix())


def _policies(folder: Path) -> str:
    return (folder / "policies").as_posix()


def _say(text: str) -> None:
    click.echo(visible(text), err=True)
