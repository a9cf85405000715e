"""What commands that plan have in common: `--policies`, `--repo`, `--revision`, `-e`, the cluster, and `--now`."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.cli.options.cluster import cluster_options, context_option
from reconciler.controller import ClusterPlace, NoRepository, Origins, Question
from reconciler.kube.api_server import Unreachable
from reconciler.kube.file_text import ClusterFileError
from reconciler.model.instant import Instant, instant
from reconciler.plan.check import BrokenInvariant
from reconciler.policy.environments import NotChosen

T = TypeVar("T")


def answered(ask: Callable[[], T]) -> T:
    """What was asked for; what stands in the way of an answer becomes a sentence, and never a trace."""
    try:
        return ask()
    except NotChosen as error:
        raise click.UsageError(str(error)) from None
    except BrokenInvariant as broken:
        raise click.ClickException(
            f"there is no safe plan, by a fault of reconciler or of the cluster file:\n{broken}"
        ) from None
    except ClusterFileError as error:
        raise click.ClickException(f"{error}\n  remedy: {error.remedy}") from None
    except (NoRepository, Unreachable, OSError) as error:
        raise click.ClickException(str(error)) from None


class TimeType(click.ParamType[Instant]):
    """Reads 2026-11-02T08:00:00Z."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Instant:
        try:
            return instant(str(value))
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, and those for a base and for pruning where a command has them; it gets all as `question`."""
    return cluster_options(_with_question(command, (*_OPTIONS, _NOW)))


def live_question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command that acts: on a live cluster, now."""
    return context_option(_with_question(command, _OPTIONS))


def _with_question(command: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    @wraps(command)
    def with_question(place: ClusterPlace, **given: Any) -> Any:
        named: tuple[Path, ...] = given.pop("policies")
        paths = named or (Path("policies"),)
        repository = given.pop("repository")
        if repository and len(paths) > 1:
            raise click.UsageError("in a repository, name one path")
        resources = given.pop("resources")
        if resources and (named or repository):
            raise click.UsageError("policies are custom resources of the cluster, or in files: name one of the two")
        origins = Origins(paths, repository, given.pop("revision"), resources)
        question = Question(
            origins,
            place,
            environment=given.pop("environment"),
            now=given.pop("now", None),
            base=given.pop("base", ""),
            prune=given.pop("prune", ()),
            takes_dumped=not (named or repository or resources),
        )
        return command(question=question, **given)

    for option in reversed(options):
        with_question = option(with_question)
    return with_question


_OPTIONS = (
    click.option(
        "--policies",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="PATH",
        help="Where they are: policies, or else in the dump.",
    ),
    click.option(
        "--repo", "repository", default="", metavar="URL", help="A repository: a folder, or an address of https or SSH."
    ),
    click.option("--revision", default="HEAD", show_default=True, metavar="REV", help="Its revision."),
    click.option("--resources", is_flag=True, help="They are custom resources of the cluster that is looked at."),
    click.option(
        "-e", "--environment", help="base, or the name of an overlay; else the one whose guard names the cluster."
    ),
)
_NOW = click.option("--now", type=TimeType(), help="Plan as if it were then.")
