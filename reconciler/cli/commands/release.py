"""`reconciler release`: removes the reconciler's own objects and marks from a cluster; NodePools and Nodes stay."""

from typing import Any

import click

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import Output, answered, cluster_options, output_options, write
from reconciler.controller.apply_once import Acting, Occupied
from reconciler.controller.cluster import ClusterPlace, ClusterView, observed_cluster
from reconciler.controller.release import release_all
from reconciler.plan.release import release
from reconciler.report.released import Released, ReleaseHeader, released_document


@click.command()
@cluster_options
@click.option("--pool", default="", metavar="NAME", help="Only release this pool.")
@click.option("--yes", is_flag=True, help="Carry out the release; by default it is only shown.")
@output_options
def command(place: ClusterPlace, outputs: tuple[Output, ...], color: str, **asked: Any) -> int:
    """Remove the taints, labels, gates, pods and freezes of reconciler from the cluster. NodePools and Nodes stay.

    Stop a running controller first, because a controller would add them again. For one pool, suspend the pool or set
    its mode to Observe first.
    """
    if not asked["yes"]:
        write(released_document(_to_be_released(place, asked["pool"])), outputs, color)
        return ExitCode.FINE
    if place.file:
        raise click.UsageError("--yes changes the live cluster and cannot be combined with --cluster")
    acting = Acting(place.context, lambda text: click.echo(f"note: {text}", err=True), place.namespace)
    released = _released(acting, asked["pool"])
    write(released_document(released), outputs, color)
    if not released.failed and not released.why_unsure:
        return ExitCode.FINE
    return ExitCode.PARTLY if released.done else ExitCode.FAILED


def _to_be_released(place: ClusterPlace, pool: str) -> Released:
    cluster_view = answered(lambda: observed_cluster(place))
    about = _about(cluster_view, pool, is_file=place.file is not None)
    return Released(about, left=release(cluster_view.observed, pool), is_asked=False)


def _released(acting: Acting, pool: str) -> Released:
    cluster_view, taken = answered(lambda: release_all(acting, pool), Occupied)
    return Released(_about(cluster_view, pool), taken.carried_out, taken.left)


def _about(cluster_view: ClusterView, pool: str, *, is_file: bool = False) -> ReleaseHeader:
    return ReleaseHeader(cluster_view.name, cluster_view.observed, cluster_view.now, __version__, pool, is_file)
