"""Where output goes and how it looks: `-o FORMAT` or `-o FORMAT=FILE`, several at once, and `--color`."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from reconciler import report
from reconciler.cli.files.replace import replace_files
from reconciler.report.checked import CheckReport
from reconciler.report.document import ReportDocument


class Output(NamedTuple):
    """A format, and the file it goes to; without one it goes to standard output."""

    format: str
    file: Path | None


class OutputType(click.ParamType[Output]):
    """Reads `json` and `json=problems.json`."""

    name = "FORMAT[=FILE]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        if isinstance(value, Output):
            return value
        name, _, file = str(value).partition("=")
        if name not in report.FORMATS:
            self.fail(f"{name!r} is no format; choose of {', '.join(report.FORMATS)}.", param, ctx)
        return Output(name, Path(file) if file else None)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The two options, the same on every command that reports."""
    output = click.option(
        "-o",
        "--output",
        "outputs",
        type=OutputType(),
        multiple=True,
        help=f"{', '.join(report.FORMATS)}; with =FILE it goes there. May be given several times.",
    )
    color = click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
    return output(color(command))


def write(document: ReportDocument | CheckReport, outputs: tuple[Output, ...], color: str) -> None:
    """Writes the document once for each output; text to standard output where none was asked for."""
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
    """What was asked for; else NO_COLOR, FORCE_COLOR, and whether a person looks at it."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def is_answered() -> bool:
    """Whether a person reads what is asked on standard error, and can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()
