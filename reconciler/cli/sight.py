"""Where a command looks at a cluster: `--cluster FILE`, or the live one of the current kubeconfig or `--context`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from reconciler.wiring import ClusterPlace

_CONTEXT = click.option("--context", metavar="NAME", help="Context of the kubeconfig.")


def context_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Of the live cluster; the command gets it as `place`."""

    @wraps(command)
    def with_place(context: str | None, **others: Any) -> Any:
        return command(place=ClusterPlace(None, False, context), **others)

    return _CONTEXT(with_place)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The three options; the command gets them as `place`."""

    @wraps(command)
    def with_place(cluster_file: Path | None, complete: bool, context: str | None, **others: Any) -> Any:
        if cluster_file and context:
            raise click.UsageError("name a file or a context, not both")
        return command(place=ClusterPlace(cluster_file, complete, context), **others)

    file = click.option(
        "--cluster",
        "cluster_file",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
        help="A dump, or what the line of `dump --kubectl` wrote; - for standard input. Else the live cluster.",
    )
    complete = click.option("--complete", is_flag=True, help="The file has all there is of every kind.")
    return file(complete(_CONTEXT(with_place)))
