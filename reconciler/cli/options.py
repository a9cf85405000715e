"""Options shared by several commands."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from reconciler import report
from reconciler.cli.files import replace_files
from reconciler.controller.cluster import ClusterPlace
from reconciler.controller.policies import NoRepository, Origins, Question
from reconciler.kube.api_server import Unreachable
from reconciler.model import names
from reconciler.model.fields import NAMESPACE
from reconciler.model.instant import instant
from reconciler.model.parsers import is_namespace
from reconciler.model.policy.guards import OBJECT_TITLE
from reconciler.model.quantity import Duration, OutOfRange
from reconciler.policy.resolve import NotChosen
from reconciler.report.checked import CheckReport
from reconciler.report.document import ReportDocument

T = TypeVar("T")

# --- The cluster to read: `--cluster FILE`, or the live cluster of the current kubeconfig or of `--context`.


class Parsed(click.ParamType[T]):
    """An option whose text is parsed by a function, which raises ValueError with a sentence."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        if not isinstance(value, str):
            parsed: T = value
            return parsed
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)


def _namespace(text: str) -> str:
    if not is_namespace(text):
        raise ValueError(f'"{text}" is not a namespace: write {NAMESPACE.words}')
    return text


def _object_title(text: str) -> str:
    if not re.fullmatch(OBJECT_TITLE.pattern, text):
        raise ValueError(f'"{text}" is not the name of an object; write KIND/NAME, as plan prints it')
    return text


OBJECT = Parsed("KIND/NAME", _object_title)
prune_option = click.option(
    "--prune",
    type=OBJECT,
    multiple=True,
    metavar="KIND/NAME",
    help="Allow deletion of this object, which no policy declares any more.",
)
kubeconfig_option = click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
_REPOSITORY = click.option(
    "--repo",
    "repository",
    default="",
    metavar="URL",
    help="Git repository with the policies: a folder, or an https or SSH URL.",
)
_HEAD = "HEAD"
revision_option = click.option(
    "--revision", default=_HEAD, show_default=True, metavar="REV", help="Revision of the repository."
)
resources_option = click.option("--resources", is_flag=True, help="Read policies from custom resources of the cluster.")
# One setting for our own namespace: Lease, memory, statuses, and the freeze of everything.
namespace_option = click.option(
    "--namespace",
    type=Parsed("NAME", _namespace),
    default=names.OWN_NAMESPACE,
    show_default=True,
    envvar="RECONCILER_NAMESPACE",
    show_envvar=True,
    metavar="NAME",
    help="Namespace of the controller.",
)


def context_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of the live cluster and the controller's namespace; the command gets both as `place`."""

    @wraps(command)
    def with_place(
        context: str | None, namespace: str, cluster_file: Path | None = None, complete: bool = False, **others: Any
    ) -> Any:
        if cluster_file and context:
            raise click.UsageError("--cluster and --context cannot be combined")
        return command(place=ClusterPlace(cluster_file, complete, context, namespace), **others)

    return kubeconfig_option(namespace_option(with_place))


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and options of a cluster file."""
    file = click.option(
        "--cluster",
        "cluster_file",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
        help="File to read in place of the live cluster: written by `reconciler dump`, or by the kubectl command that "
        "`reconciler dump --kubectl` prints; - for standard input.",
    )
    complete = click.option(
        "--complete",
        is_flag=True,
        help="States that the file of --cluster lists all objects of every kind: if a kind is not in the file, the "
        "cluster has no objects of this kind.",
    )
    return file(complete(context_option(command)))


# --- Durations as options: 90s, 30m or 24h.


def _duration(text: str) -> Duration:
    try:
        duration = Duration.parse(text)
    except OutOfRange as error:
        raise ValueError(f'"{text}" {error}') from None
    except ValueError as error:
        raise ValueError(f'{error}, got "{text}"') from None
    if not duration.milliseconds:
        raise ValueError("the duration must be positive; write 4h, for example")
    return duration


DURATION = Parsed("DURATION", _duration)


# --- History folder: `--history`, or RECONCILER_HISTORY.

history_option = click.option(
    "--history",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="RECONCILER_HISTORY",
    metavar="DIR",
    help="Folder in which `reconciler run` stores the inputs of each plan that has actions. Inputs older than "
    "seven days are deleted.",
)


# --- Output: `-o FORMAT` or `-o FORMAT=FILE`, repeatable, and `--color`.


class Output(NamedTuple):
    """A format, and its file; without a file the output goes to standard output."""

    format: str
    file: Path | None


def _output(text: str) -> Output:
    """Such as json, or json=problems.json."""
    name, _, file = text.partition("=")
    if name not in report.FORMATS:
        raise ValueError(f"{name!r} is not a format; choose one of {', '.join(report.FORMATS)}")
    return Output(name, Path(file) if file else None)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The two options, the same on every command with a report."""
    output = click.option(
        "-o",
        "--output",
        "outputs",
        type=Parsed("FORMAT[=FILE]", _output),
        multiple=True,
        help=f"{', '.join(report.FORMATS)}; with =FILE written to that file. Repeatable.",
    )
    color = click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
    return output(color(command))


def write(document: ReportDocument | CheckReport, outputs: tuple[Output, ...], color: str) -> None:
    """Writes the document once per output; without outputs, as text to standard output."""
    asked = outputs or (Output("text", None),)
    replace_files(
        {
            output.file: report.write(document, output.format, color=color == "always").encode()
            for output in asked
            if output.file
        }
    )
    for output in asked:
        if not output.file:
            click.echo(report.write(document, output.format, color=wants_color(color)), nl=False, color=True)


def wants_color(color: str) -> bool:
    """The value of --color; for auto, follows NO_COLOR, FORCE_COLOR, and whether the output is a terminal."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def is_answered() -> bool:
    """Whether a person can read a prompt on standard error and answer on standard input."""
    return sys.stdin.isatty() and sys.stderr.isatty()


# --- Options of commands that plan: `--policies`, `--repo`, `--revision`, `-e`, the cluster, and `--now`.


def answered(ask: Callable[[], T], *refusals: type[Exception]) -> T:
    """Result of `ask`; errors become messages without a traceback, and so do `refusals`."""
    # Commands that only read policies need no planners, whose imports take a quarter of a second.
    from reconciler.kube.cluster_file import ClusterFileError  # noqa: PLC0415
    from reconciler.plan.check import BrokenInvariant  # noqa: PLC0415

    errors: tuple[type[Exception], ...] = (NoRepository, Unreachable, OSError, *refusals)
    try:
        return ask()
    except NotChosen as error:
        raise click.UsageError(str(error)) from None
    except BrokenInvariant as broken:
        raise click.ClickException(
            f"no safe plan, because of a bug in reconciler or a fault in the cluster file:\n{broken}"
        ) from None
    except ClusterFileError as error:
        raise click.ClickException(f"{error}\n  remedy: {error.remedy}") from None
    except errors as error:
        raise click.ClickException(str(error)) from None


TIME = Parsed("TIME", instant)


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options, and those for base and pruning if the command has them; the command gets all as `question`."""
    return cluster_options(_with_question(command, _OF_ANY_CLUSTER))


def live_question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same options for a command that acts on a live cluster, now."""
    return context_option(_with_question(command, _OF_A_LIVE_CLUSTER))


def _origins(paths: tuple[Path, ...], repository: str, revision: str, resources: bool = False) -> Origins:
    if repository and len(paths) > 1:
        raise click.UsageError("--repo takes one path")
    if not repository and revision != _HEAD:
        raise click.UsageError(f"--revision {revision} chooses a revision of a repository: name one with --repo")
    return Origins(paths or (Path("policies"),), repository, revision, resources)


def _with_question(command: Callable[..., Any], options: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    @wraps(command)
    def with_question(place: ClusterPlace, **given: Any) -> Any:
        named: tuple[Path, ...] = given.pop("policies")
        origins = _origins(named, given.pop("repository"), given.pop("revision"), given.pop("resources"))
        if origins.resources and (named or origins.repository):
            raise click.UsageError("--resources cannot be combined with --policies or --repo")
        question = Question(
            origins,
            place,
            environment=given.pop("environment"),
            now=given.pop("now", None),
            base=given.pop("base", ""),
            prune=given.pop("prune", ()),
            takes_dumped=not (named or origins.repository or origins.resources),
        )
        return command(question=question, **given)

    for option in reversed(options):
        with_question = option(with_question)
    return with_question


def _policies_option(default: str) -> Callable[..., Any]:
    text = f"Path of the policies.  [default: {default}]"
    return click.option("--policies", type=click.Path(path_type=Path), multiple=True, metavar="PATH", help=text)


_OPTIONS = (
    _REPOSITORY,
    revision_option,
    resources_option,
    click.option(
        "-e",
        "--environment",
        help="base, or the name of an overlay; by default the environment whose ChangeGuard names the cluster.",
    ),
)
_OF_A_LIVE_CLUSTER = (_policies_option("the folder policies"), *_OPTIONS)
_OF_ANY_CLUSTER = (
    _policies_option("the folder policies; if there is none, the policies in the dump"),
    *_OPTIONS,
    click.option("--now", type=TIME, help="Use this time in place of the current time."),
)


# --- Origin of the policies: PATHS on disk, or in a Git repository with `--repo` and `--revision`.


def origin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument and the two options; the command gets them as `origins`."""

    @wraps(command)
    def with_origins(paths: tuple[Path, ...], repository: str, revision: str, **others: Any) -> Any:
        return command(origins=_origins(paths, repository, revision), **others)

    paths = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
    return paths(_REPOSITORY(revision_option(with_origins)))
