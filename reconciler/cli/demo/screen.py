"""The demo's screen; owner of how wide it is, in which colours, and at which pace somebody looks at it."""

import shutil
import sys
import time

import click

from reconciler import report
from reconciler.cli.demo.wrap import folded
from reconciler.cli.options.output import wants_color
from reconciler.report.blocks import Tone
from reconciler.report.document import ReportDocument
from reconciler.report.formats.paint import Paint

_NARROWEST, _WIDEST = 60, 120
_BETWEEN_ACTS_SECONDS = 0.7
_UNSEEN = 100  # columns of a table where nobody sees a terminal


class Screen:
    """What is said goes to standard output; nothing moves where that is no terminal."""

    def __init__(self, color: str, *, moves: bool) -> None:
        self.color = wants_color(color)
        self.paint = Paint(self.color)
        self.moves = moves and sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns
        self._width = min(max(columns, _NARROWEST), _WIDEST) if sys.stdout.isatty() else None

    @property
    def columns(self) -> int:
        return self._width or _UNSEEN

    def heading(self, number: int, title: str, command: str) -> None:
        """What comes, and the command that shows it."""
        self.wait(_BETWEEN_ACTS_SECONDS)
        left = f"{number}  {title}"
        gap = " " * max(2, self.columns - len(left) - len(command))
        self.line()
        self.line(f"{self.paint.bold(left)}{gap}{self.paint.dim(command)}")
        self.line()

    def say(self, text: str, tone: Tone = "plain") -> None:
        self.line(self.paint.toned(f"   {text}", tone))

    def show(self, document: ReportDocument) -> None:
        """As the command would print it."""
        for each in report.write(document, "text", color=self.color).splitlines():
            self.line(f"   {each}" if each else "")

    def line(self, text: str = "") -> None:
        for each in folded(text, self._width):
            click.echo(each.rstrip(), color=True)

    def rewrite(self, text: str) -> None:
        """The line that is there already is written anew; only where something moves."""
        click.echo(f"\r{text}\x1b[K", nl=False, color=True)

    def wait(self, seconds: float) -> None:
        """For a person to see it."""
        if self.moves:
            time.sleep(seconds)
