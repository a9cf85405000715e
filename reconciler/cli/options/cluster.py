"""Where a command looks at a cluster: `--cluster FILE`, or the live one of the current kubeconfig or `--context`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from reconciler.controller import ClusterPlace
from reconciler.model import names
from reconciler.model.fields import NAMESPACE
from reconciler.model.object_names import is_namespace


class NamespaceType(click.ParamType[str]):
    """Reads gpu-system."""

    name = "NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not is_namespace(str(value)):
            self.fail(f'"{value}" is no namespace: write {NAMESPACE.words}.', param, ctx)
        return str(value)


_CONTEXT = click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
# One setting for everything that means our own namespace: Lease, memory, statuses, and the freeze of everything.
namespace_option = click.option(
    "--namespace",
    type=NamespaceType(),
    default=names.OWN_NAMESPACE,
    show_default=True,
    envvar="RECONCILER_NAMESPACE",
    show_envvar=True,
    metavar="NAME",
    help="The controller's own.",
)


def context_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Of the live cluster, with the controller's namespace; the command gets both as `place`."""

    @wraps(command)
    def with_place(context: str | None, namespace: str, **others: Any) -> Any:
        return command(place=ClusterPlace(None, False, context, namespace), **others)

    return _CONTEXT(namespace_option(with_place))


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The four options; the command gets them as `place`."""

    @wraps(command)
    def with_place(
        cluster_file: Path | None, complete: bool, context: str | None, namespace: str, **others: Any
    ) -> Any:
        if cluster_file and context:
            raise click.UsageError("name a file or a context, not both")
        return command(place=ClusterPlace(cluster_file, complete, context, namespace), **others)

    file = click.option(
        "--cluster",
        "cluster_file",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
        help="A dump, or what the line of `dump --kubectl` wrote; - for standard input. Else the live cluster.",
    )
    complete = click.option("--complete", is_flag=True, help="The file has all there is of every kind.")
    return file(complete(_CONTEXT(namespace_option(with_place))))
