"""Where the policies are read: PATHS on disk, or in a Git repository with `--repo` and `--revision`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from reconciler.controller import Origins


def origin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument and the two options; the command gets them as `origins`."""

    @wraps(command)
    def with_origins(paths: tuple[Path, ...], repository: str, revision: str, **others: Any) -> Any:
        if repository and len(paths) > 1:
            raise click.UsageError("in a repository, name one path")
        return command(origins=Origins(paths or (Path("policies"),), repository, revision), **others)

    paths = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
    repository = click.option(
        "--repo", "repository", default="", metavar="URL", help="A repository: a folder, or an address of https or SSH."
    )
    revision = click.option("--revision", default="HEAD", show_default=True, metavar="REV", help="Its revision.")
    return paths(repository(revision(with_origins)))
