"""`reconciler release`: takes everything of ours off a cluster, NodePools and Nodes apart."""

from typing import Any

import click

from reconciler import __version__, controller
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options.cluster import cluster_options
from reconciler.cli.options.output import Output, output_options, write
from reconciler.cli.options.plan import answered
from reconciler.controller.apply_once import Acting
from reconciler.controller.command_lease import Occupied
from reconciler.controller.release import release_all
from reconciler.plan.release.release import release
from reconciler.report.released import About, Released, released_document


@click.command()
@cluster_options
@click.option("--pool", default="", metavar="NAME", help="Only what belongs to one pool.")
@click.option("--yes", is_flag=True, help="Do it; else it is only told.")
@output_options
def command(place: controller.ClusterPlace, outputs: tuple[Output, ...], color: str, **asked: Any) -> int:
    """Take our taints, labels, gates, pods and freezes off the cluster. NodePools and Nodes stay as they are.

    A controller that runs would put them back: stop it first. For one pool, have it leave that alone first: suspend the
    pool, or set its mode to Observe.
    """
    if not asked["yes"]:
        write(released_document(_to_be_released(place, asked["pool"])), outputs, color)
        return ExitCode.FINE
    if place.file:
        raise click.UsageError("--yes acts on the live cluster: leave out --cluster")
    acting = Acting(place.context, lambda told: click.echo(f"note: {told}", err=True), place.namespace)
    released = _released(acting, asked["pool"])
    write(released_document(released), outputs, color)
    if not released.failed and not released.why_unsure:
        return ExitCode.FINE
    return ExitCode.PARTLY if released.done else ExitCode.FAILED


def _to_be_released(place: controller.ClusterPlace, pool: str) -> Released:
    sight = answered(lambda: controller.observed_cluster(place))
    return Released(_about(sight, pool), left=release(sight.observed, pool), is_asked=False)


def _released(acting: Acting, pool: str) -> Released:
    try:
        sight, taken = answered(lambda: release_all(acting, pool))
    except Occupied as occupied:
        raise click.ClickException(str(occupied)) from None
    return Released(_about(sight, pool), taken.carried_out, taken.left)


def _about(sight: controller.ClusterView, pool: str) -> About:
    return About(sight.name, sight.observed, sight.now, __version__, pool)
