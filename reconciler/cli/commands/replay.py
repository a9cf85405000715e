"""`reconciler replay`: repeats plans from their recorded inputs."""

from pathlib import Path
from typing import Any

import click
import msgspec

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import TIME, answered, history_option, output_options, write
from reconciler.controller.dry_run import replay_dump, replay_history
from reconciler.model.instant import Instant
from reconciler.plan.files.dump import BadDump
from reconciler.report.replayed import ReplayResult, replayed_document
from reconciler.sources.history import NotKept
from reconciler.sources.input_file import MOST_CLUSTER_BYTES, MOST_PLAN_BYTES, read_file

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("dump", required=False, type=_FILE)
@history_option
@click.option("--since", type=TIME, help="Only plans in the history since this time.")
@click.option("--until", type=TIME, help="Only plans in the history up to this time.")
@click.option("--expect", metavar="PLAN", help="Expected plan of DUMP: its digest, or the output of plan -o json.")
@output_options
def command(dump: Path | None, history: Path | None, **given: Any) -> int:
    """Repeat the plan of DUMP, or the plans in the history that `reconciler run` wrote, and check that each result is
    the same. Exit 1 if a result differs."""
    since, until, expected = given.pop("since") or Instant(0), given.pop("until"), given.pop("expect")
    if dump is not None:
        results = [answered(lambda: _of_dump(dump, expected))]
    elif history is not None and expected is None:
        results = answered(lambda: list(replay_history(history, since, until)), NotKept)
    else:
        raise click.UsageError("name a dump, or a history folder with --history; --expect requires a dump")
    write(replayed_document(results, __version__), **given)
    return ExitCode.FAILED if any(each.differs for each in results) else ExitCode.FINE


def _of_dump(file: Path, expected: str | None) -> ReplayResult:
    try:
        return replay_dump(read_file(file, MOST_CLUSTER_BYTES), _digest(expected) if expected else "")
    except BadDump as bad:
        raise click.ClickException(f"{file}: {bad}\n  remedy: {bad.remedy}") from None


class _Plan(msgspec.Struct):
    """The fields of plan.json that replay reads."""

    digest: str


def _digest(expected: str) -> str:
    if expected.startswith("sha256:"):
        return expected
    try:
        return msgspec.json.decode(read_file(Path(expected), MOST_PLAN_BYTES), type=_Plan).digest
    except OSError as error:
        raise click.ClickException(f"{expected} cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"{expected} is not a plan in the format of plan -o json: {error}") from None
