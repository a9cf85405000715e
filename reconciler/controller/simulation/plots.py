"""Plots of simulations: capacity and use, queueing, taints and deletions, disruption, cost.

A plot of one simulation shows its parts; a plot of several shows one line each for comparison.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC
from functools import partial
from io import StringIO
from itertools import accumulate
from typing import Any

import matplotlib as mpl
import msgspec
from matplotlib import dates
from matplotlib.figure import Figure

from reconciler.model.bundle import short_revision
from reconciler.model.instant import Instant, span, timestamp
from reconciler.report.formats.html_page import Picture
from reconciler.report.simulation.simulated import Simulated, TimelineStep
from reconciler.report.wording import counted, dollars

# --- Drawing with matplotlib: axes, lines and bars, and the SVG output.
#
# The same figures give the same bytes: no dates, no random names. Text and axes take the colour of the page.

COLORS = ("#3b82c4", "#d9822b", "#3a9d6a", "#a05fc0", "#c4504b", "#8a8f98")
BAD = "#c4504b"
GOOD = "#3a9d6a"

_INK = "#1a2b3c"  # placeholder for the text colour of the page
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
_LEVELS = 6  # units of tick labels, from years to seconds
_MOST_HAPPENINGS = 30  # that are drawn; more would hide the plot

Series = Callable[[TimelineStep], float]


class PlotPanel(msgspec.Struct, frozen=True):
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
        """Bars for values above zero, each wide enough to be visible."""
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
    """The SVG; `name` keeps its ids distinct from those of other plots on the page."""
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
    """The time as matplotlib's day number."""
    return moment / _DAY_MS


def _days(run: Simulated) -> str:
    """First and last day: times alone would not name the day."""
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
    """The SVG without prolog and metadata."""
    text = StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    return svg.replace(_INK, "currentColor").strip()


class _Subject(msgspec.Struct, frozen=True):
    name: str
    heading: str
    unit: str
    alone: Callable[[PlotPanel], None]
    beside_others: Callable[[PlotPanel], None]
    words: Callable[[Simulated], str]
    heading_of_several: str = ""


def pictures(runs: Sequence[Simulated]) -> tuple[Picture, ...]:
    return tuple(_drawn(each, runs) for each in _SUBJECTS)


def _drawn(subject: _Subject, runs: Sequence[Simulated]) -> Picture:
    draw = subject.alone if len(runs) == 1 else subject.beside_others
    heading = subject.heading_of_several if len(runs) > 1 and subject.heading_of_several else subject.heading
    words = " ".join(
        f"{run.label}: {subject.words(run)}." if run.label else _sentence(f"{subject.words(run)}.") for run in runs
    )
    return Picture(subject.name, heading, words, plot(subject.name, subject.unit, runs, draw))


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _sum(step: TimelineStep, field: str) -> int:
    return sum(getattr(each, field) for each in step.pools)


_nodes, _gpus, _gpus_used, _tainted = (partial(_sum, field=each) for each in ("nodes", "gpus", "gpus_used", "tainted"))


def _wait(step: TimelineStep) -> float:
    return step.longest_wait_seconds / 60


def _price(step: TimelineStep) -> float:
    return step.micro_dollars_per_hour / 1_000_000


def _capacity(panel: PlotPanel) -> None:
    panel.line(_gpus, "there")
    panel.area(_gpus_used, "in use")
    panel.line(lambda step: step.pending_gpus, "pending", color=BAD, linewidth=1.1)


def _capacities(panel: PlotPanel) -> None:
    panel.line(_gpus, panel.run.label)
    panel.line(_gpus_used, linestyle=(0, (2, 1)), linewidth=1.1)


def _queue(panel: PlotPanel) -> None:
    panel.area(_wait)
    panel.line(_wait, "longest wait")


def _leaving(panel: PlotPanel) -> None:
    if _most(panel.run, _tainted):
        panel.area(_tainted, "tainted by the controller")
    panel.bars(lambda step: step.bought, "bought", GOOD)
    panel.bars(lambda step: -step.removed, "removed", BAD)


def _disruption(panel: PlotPanel) -> None:
    panel.bars(lambda step: step.evicted, "evicted", COLORS[1])
    panel.bars(lambda step: step.lost, "lost", BAD)


def _disruptions(panel: PlotPanel) -> None:
    sums = accumulate(each.evicted + each.lost for each in panel.run.steps)
    so_far = dict(zip((each.at for each in panel.run.steps), sums, strict=True))
    panel.line(lambda step: so_far[step.at], panel.run.label)


def _cost(panel: PlotPanel) -> None:
    panel.area(_price)
    panel.line(_price)


def _most(run: Simulated, value: Callable[[TimelineStep], int]) -> int:
    return max((value(each) for each in run.steps), default=0)


def _capacity_words(run: Simulated) -> str:
    most, least = _most(run, _gpus), min((_gpus(each) for each in run.steps), default=0)
    there = counted(most, "GPU") if least == most else f"{least} to {counted(most, 'GPU')}"
    return f"{there}, of which {run.sums.utilization_percent} % were in use on average"


def _queue_words(run: Simulated) -> str:
    longest = _most(run, lambda step: step.longest_wait_seconds)
    if not longest and not run.sums.mean_wait_seconds:
        return "no pod waited for a node"
    text = f"pods waited {span(run.sums.mean_wait_seconds)} for a node on average"
    return f"{text}, some about {span(longest)}" if longest > run.sums.mean_wait_seconds else text


def _left_words(run: Simulated) -> str:
    tainted = _most(run, _tainted)
    text = f"{counted(run.sums.nodes_bought, 'node')} bought, {run.sums.nodes_removed} removed"
    most = f"at most {tainted} tainted by the controller at once" if tainted else "none tainted by the controller"
    return f"{text}, {most}"


def _disruption_words(run: Simulated) -> str:
    sums = run.sums
    lost = f"{counted(sums.lost_pods, 'pod')} lost with their machines" if sums.lost_pods else ""
    evicted = f"{counted(sums.evictions, 'pod')} evicted, with {counted(sums.disrupted_gpus, 'GPU')}"
    return ", ".join(filter(None, (evicted if sums.evictions else "", lost))) or "no pod was evicted or lost"


def _cost_words(run: Simulated) -> str:
    return f"{dollars(run.sums.micro_dollars)} in total"


def _compared(series: Series) -> Callable[[PlotPanel], None]:
    return lambda panel: panel.line(series, panel.run.label)


_SUBJECTS = (
    _Subject(
        "capacity", "Capacity and use", "GPUs", _capacity, _capacities, _capacity_words, "Capacity, dotted: in use"
    ),
    _Subject("queue", "Queueing time", "minutes", _queue, _compared(_wait), _queue_words),
    _Subject("leaving", "Taints, purchases and deletions", "nodes", _leaving, _compared(_nodes), _left_words, "Nodes"),
    _Subject("disruption", "Disruption", "pods", _disruption, _disruptions, _disruption_words, "Pods disrupted so far"),
    _Subject(
        "cost",
        "Cost",
        "dollars an hour",
        _cost,
        _compared(_price),
        _cost_words,
    ),
)
