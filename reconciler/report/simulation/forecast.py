"""A Forecast: what a plan would come to, simulated; and how its report tells it."""

from collections.abc import Iterator

import msgspec

from reconciler.model.human_time import span
from reconciler.report.blocks import Blank, Block, ReportNote, ReportNotes, Section, line
from reconciler.report.document import ReportDocument
from reconciler.report.plans.plan_shape import ForecastTold
from reconciler.report.simulation.simulated import Simulated
from reconciler.report.simulation.simulated_document import broken_lines, summary
from reconciler.report.simulation.simulated_json import summary_json
from reconciler.report.simulation.story import story
from reconciler.report.wording import counted

WITHOUT, WITH, APPROVED = "without this change", "with it", "once approved"


class Forecast(msgspec.Struct, frozen=True):
    """The same cluster, the same load, the same hours."""

    after: Simulated  # with the policies that are planned
    before: Simulated | None = None  # with those of the base, where there is one
    approved: Simulated | None = None  # where guards hold something: as if they held nothing

    @property
    def runs(self) -> tuple[Simulated, ...]:
        return tuple(each for each in (self.before, self.after, self.approved) if each is not None)

    @property
    def seconds(self) -> int:
        return (self.after.end - self.after.start) // 1_000


def with_forecast(document: ReportDocument, forecast: Forecast) -> ReportDocument:
    """A plan's report, and what it would come to."""
    heading = f"The next {span(forecast.seconds)}, if the present load goes on"
    section = Section(heading, tuple(_blocks(forecast)))
    payload = document.payload | {"forecast": msgspec.to_builtins(_forecast_json(forecast))}
    return msgspec.structs.replace(document, blocks=(*document.blocks, Blank(), section), payload=payload)


def _forecast_json(forecast: Forecast) -> ForecastTold:
    before, approved = forecast.before, forecast.approved
    return ForecastTold(
        seconds=forecast.seconds,
        without=None if before is None else summary_json(before.sums),
        with_it=summary_json(forecast.after.sums),
        approved=None if approved is None else summary_json(approved.sums),
    )


def _blocks(forecast: Forecast) -> Iterator[Block]:
    yield from summary(forecast.runs)
    if forecast.approved is not None:
        held = counted(forecast.after.sums.held_by_guards, "decision")
        yield ReportNotes(
            (ReportNote("note", f"guards hold {held}: once that is approved, it goes on as in the last column"),)
        )
    troubles = dict.fromkeys(each for run in forecast.runs for each in run.troubles)
    if troubles:
        yield ReportNotes(tuple(ReportNote("warning", each) for each in troubles))
    for run in forecast.runs:
        yield from broken_lines(run)
        if happened := story(run):
            yield Blank()
            yield Section(f"What would happen {run.label}".rstrip(), (happened,))
    if not any(story(run) for run in forecast.runs):
        yield line("Nothing would happen.", "dim")
