"""What came of simulations in pictures: capacity and use, queueing, taints and deletions, disruption, cost.

Of one simulation a picture shows the parts; of several, one line each, so that they can be compared.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec

from reconciler.controller.simulation.plot import BAD, COLORS, GOOD, PlotPanel, plot
from reconciler.model.human_time import span
from reconciler.report.formats.picture import Picture
from reconciler.report.simulation.simulated import Simulated, TimelineStep
from reconciler.report.wording import counted, dollars


class _Subject(msgspec.Struct, frozen=True):
    name: str
    heading: str
    unit: str
    alone: Callable[[PlotPanel], None]
    beside_others: Callable[[PlotPanel], None]
    words: Callable[[Simulated], str]
    heading_of_several: str = ""


def pictures(runs: Sequence[Simulated]) -> tuple[Picture, ...]:
    """Of one simulation, or of several beside one another."""
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


def _gpus(step: TimelineStep) -> int:
    return _sum(step, "gpus")


def _gpus_used(step: TimelineStep) -> int:
    return _sum(step, "gpus_used")


def _tainted(step: TimelineStep) -> int:
    return _sum(step, "tainted")


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


def _queues(panel: PlotPanel) -> None:
    panel.line(_wait, panel.run.label)


def _leaving(panel: PlotPanel) -> None:
    if _most(panel.run, _tainted):
        panel.area(_tainted, "tainted by us")
    panel.bars(lambda step: step.bought, "bought", GOOD)
    panel.bars(lambda step: -step.removed, "removed", BAD)


def _sizes(panel: PlotPanel) -> None:
    panel.line(lambda step: _sum(step, "nodes"), panel.run.label)


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


def _costs(panel: PlotPanel) -> None:
    panel.line(_price, panel.run.label)


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


def _leaving_words(run: Simulated) -> str:
    tainted = _most(run, _tainted)
    text = f"{counted(run.sums.nodes_bought, 'node')} bought, {run.sums.nodes_removed} removed"
    return f"{text}, at most {tainted} tainted by us at once" if tainted else f"{text}, none tainted by us"


def _disruption_words(run: Simulated) -> str:
    sums = run.sums
    lost = f"{counted(sums.lost_pods, 'pod')} lost with their machines" if sums.lost_pods else ""
    evicted = f"{counted(sums.evictions, 'pod')} evicted, with {counted(sums.disrupted_gpus, 'GPU')}"
    return ", ".join(filter(None, (evicted if sums.evictions else "", lost))) or "no pod was evicted or lost"


def _cost_words(run: Simulated) -> str:
    return f"{dollars(run.sums.micro_dollars)} in all"


_SUBJECTS = (
    _Subject(
        "capacity", "Capacity and use", "GPUs", _capacity, _capacities, _capacity_words, "Capacity, dotted: in use"
    ),
    _Subject("queue", "Queueing time", "minutes", _queue, _queues, _queue_words),
    _Subject("leaving", "Taints, purchases and deletions", "nodes", _leaving, _sizes, _leaving_words, "Nodes"),
    _Subject("disruption", "Disruption", "pods", _disruption, _disruptions, _disruption_words, "Pods disrupted so far"),
    _Subject("cost", "Cost", "dollars an hour", _cost, _costs, _cost_words),
)
