"""How a plot is drawn with matplotlib: its frame, its lines and bars, and the SVG that comes of it.

The same figures give the same bytes: no dates, no random names. Text and lines of the axes take the colour of the page.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC
from io import StringIO
from typing import Any

import matplotlib as mpl
import msgspec
from matplotlib import dates
from matplotlib.figure import Figure

from reconciler.model.instant import Instant, timestamp
from reconciler.model.revision import short_revision
from reconciler.report.simulation.simulated import Simulated, TimelineStep

COLORS = ("#3b82c4", "#d9822b", "#3a9d6a", "#a05fc0", "#c4504b", "#8a8f98")
BAD = "#c4504b"
GOOD = "#3a9d6a"

_INK = "#1a2b3c"  # stands for the colour of the page's text
_SETTING: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "reconciler",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "axes.grid": True,
    "grid.color": _INK,
    "grid.alpha": 0.12,
    "lines.linewidth": 1.5,
}
_DAY_MS = 86_400_000
_LEVELS = 6  # of what a tick stands for, from years to seconds
_MOST_HAPPENINGS = 30  # that are drawn: beyond that they would be a curtain

Series = Callable[[TimelineStep], float]


class PlotPanel(msgspec.Struct, frozen=True):
    """One simulation on one plot."""

    axes: Any
    run: Simulated
    color: str

    def line(self, series: Series, label: str = "", **how: Any) -> None:
        how = {"color": self.color, "where": "post"} | how
        self.axes.step(self._times, [series(each) for each in self.run.steps], label=label, **how)

    def area(self, series: Series, label: str = "") -> None:
        values = [series(each) for each in self.run.steps]
        self.axes.fill_between(self._times, values, label=label, color=self.color, alpha=0.3, step="post", linewidth=0)

    def bars(self, series: Series, label: str, color: str) -> None:
        """Where there is something; each as wide that it can still be seen."""
        found = [(_day(each.at), series(each)) for each in self.run.steps if series(each)]
        if found:
            times, values = zip(*found, strict=True)
            days = (self.run.end - self.run.start) / _DAY_MS
            width = max(days / max(1, len(self.run.steps)), days / 250)
            self.axes.bar(times, values, width=-width, align="edge", color=color, label=label)

    @property
    def _times(self) -> list[float]:
        return [_day(each.at) for each in self.run.steps]


def plot(name: str, unit: str, runs: Sequence[Simulated], draw: Callable[[PlotPanel], None]) -> str:
    """The SVG; `name` sets the names within it apart from those of other plots on the page."""
    with mpl.rc_context(_SETTING):
        figure = Figure(figsize=(9.6, 2.7))
        figure.subplots_adjust(left=0.07, right=0.97, bottom=0.17, top=0.88)
        axes: Any = figure.subplots()
        for number, run in enumerate(runs):
            draw(PlotPanel(axes, run, COLORS[number % len(COLORS)]))
        if not axes.has_data():
            axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center", alpha=0.7)
        _frame(axes, unit, runs)
        return _svg(figure, name)


def _day(moment: Instant) -> float:
    """As matplotlib counts."""
    return moment / _DAY_MS


def _days(run: Simulated) -> str:
    """The first and the last: hours alone would not say of which day they are."""
    first, last = (timestamp(each)[:10] for each in (run.start, Instant(max(run.start, run.end - 1))))
    return f"{first}, UTC" if first == last else f"{first} to {last}, UTC"


def _frame(axes: Any, unit: str, runs: Sequence[Simulated]) -> None:
    first = runs[0]
    axes.set_ylabel(unit)
    axes.set_xlim(_day(first.start), _day(first.end))
    locator: Any = dates.AutoDateLocator(tz=UTC, maxticks=9)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    days = [_days(first)] * _LEVELS
    formatter: Any = dates.ConciseDateFormatter(locator, tz=UTC, offset_formats=days)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(formatter)
    axes.yaxis.get_major_locator().set_params(integer=unit != "minutes")
    low, high = axes.get_ylim()
    axes.set_ylim(min(0.0, low * 1.12), max(high * 1.15, 1.0))
    for number, happening in enumerate(first.happenings[:_MOST_HAPPENINGS]):
        label = "" if number else "faults and edits"
        axes.axvline(_day(happening.at), color=BAD, linewidth=0.8, linestyle=(0, (1, 3)), alpha=0.8, label=label)
    changes = {each.at: each.revision for run in runs for each in run.revisions[1:]}
    for at, revision in sorted(changes.items()):
        axes.axvline(_day(at), color=_INK, linewidth=0.8, linestyle=(0, (3, 3)), alpha=0.7)
        text = short_revision(revision) if len(runs) == 1 else "policies change"
        where = {"xycoords": ("data", "axes fraction"), "xytext": (4, -2), "textcoords": "offset points"}
        axes.annotate(text, (_day(at), 1), va="top", fontsize=8, **where)
    if axes.get_legend_handles_labels()[1]:
        number = len(axes.get_legend_handles_labels()[1])
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), fontsize=9, ncols=number)


def _svg(figure: Figure, name: str) -> str:
    """Without prolog and metadata."""
    text = StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    return svg.replace(_INK, "currentColor").strip()
