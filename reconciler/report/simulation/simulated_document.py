"""Simulations as a document: success, figures side by side, and events."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model.bundle import short_revision
from reconciler.model.instant import Instant, clock, span, timestamp
from reconciler.report.document import (
    Blank,
    Block,
    CheckedCount,
    Detail,
    Finding,
    Item,
    ItemList,
    ReportDocument,
    ReportNote,
    ReportNotes,
    Row,
    RowGroup,
    Section,
    Table,
    TableColumn,
    Tone,
    line,
)
from reconciler.report.plans.plan_shape import ForecastTold
from reconciler.report.simulation.simulated import COMPARED, FIGURES, PoolSum, Simulated, TimelineStep, best
from reconciler.report.simulation.simulated_json import payload, summary_json
from reconciler.report.wording import counted, dollars, listed, percent

_HOUR_MS = 3_600_000
_NUMBERS = ("nodes at first", "at the end", "usable GPU-hours", "in use", "cost")
_POOL_COLUMNS = (TableColumn("pool"), *(TableColumn(each, right=True) for each in _NUMBERS))


def simulated_document(runs: Sequence[Simulated], tool_version: str) -> ReportDocument:
    """The document of one simulation, or of several simulations of a scenario with different policies."""
    first = runs[0]
    checked = sum(len(each.expectations) for each in runs) + len(runs)
    findings = tuple(each for run in runs for each in _findings(run))
    return ReportDocument(
        command="simulate",
        title=f"Simulation of {first.name}",
        tool_version=tool_version,
        blocks=tuple(_blocks(runs, tool_version)),
        payload=payload(runs, tool_version),
        otherwise="Nothing was simulated.",
        judged=CheckedCount(checked, "expectation", "failure"),
        findings=findings,
        annotations=findings,
        titles=TITLES,
    )


def headline(simulated: Simulated, tool_version: str) -> str:
    """Scenario, simulated time, and seed."""
    seconds = (simulated.end - simulated.start) // 1_000
    text = f"{simulated.name}: {span(seconds)} from {timestamp(simulated.start)}, seed {simulated.seed}"
    return f"{text}, reconciler {tool_version}"


def _blocks(runs: Sequence[Simulated], tool_version: str) -> Iterator[Block]:
    yield from _verdict(runs)
    yield line(headline(runs[0], tool_version), "strong")
    if runs[0].description:
        yield line(runs[0].description, "dim")
    notes = dict.fromkeys(ReportNote("note", each) for run in runs for each in run.notices)
    troubles = dict.fromkeys(ReportNote("warning", each) for run in runs for each in run.troubles)
    if notes or troubles:
        yield ReportNotes((*troubles, *notes))
    yield Blank()
    yield from summary(runs)
    if len(runs) > 1:
        yield Blank()
        yield from _compared(runs)
    for run in runs:
        yield from _of_one(run, len(runs) > 1)


def _verdict(runs: Sequence[Simulated]) -> Iterator[Block]:
    for run in runs:
        yield from broken_lines(run)
        yield from (line(f"FAILED: {each.sentence}", "bad") for each in _findings(run) if each.code == UNMET)


def broken_lines(run: Simulated) -> Iterator[Block]:
    """The first broken safety rule, if any."""
    for each in run.broken[:1]:
        more = f", and {len(run.broken) - 1} more" if len(run.broken) > 1 else ""
        text = f"UNSAFE: {who(run)}{each.rule}: {each.sentence} ({clock(each.at, run.start)}, {each.event}){more}"
        yield line(text, "bad")


def _compared(runs: Sequence[Simulated]) -> Iterator[Block]:
    """Comparison of the simulations."""
    sums = [each.sums for each in runs]
    chosen = {figure: star for figure in FIGURES if figure.key in COMPARED and (star := best(figure, sums))}
    if not chosen:
        alike = [each.heading for each in FIGURES if each.key in COMPARED]
        yield line(f"No difference in {listed(alike)}.")
    for run in runs:
        ahead = [figure.heading for figure, star in chosen.items() if figure.to_text(figure.value(run.sums)) == star]
        lines = [f"best in {listed(ahead)}"] if ahead else []
        if failures := len(run.broken) + sum(not each.is_met for each in run.expectations):
            lines.append(counted(failures, "failure"))
        if chosen or lines:
            yield line(f"{run.label}: {'; '.join(lines) or 'best in none of them'}", "bad" if run.failed else "plain")


def summary(runs: Sequence[Simulated]) -> Iterator[Block]:
    """Figures in rows, simulations in columns; the best value of each row is marked with a star."""
    sums = [each.sums for each in runs]
    several = len(runs) > 1
    order = sorted(FIGURES, key=lambda each: each.key not in COMPARED) if several else FIGURES
    rows = []
    for figure in order:
        values = [figure.value(each) for each in sums]
        if not any(values) and figure.key not in COMPARED:
            continue
        star = best(figure, sums)
        lines = [figure.to_text(each) for each in values]
        cells = [f"{each}{' *' if each == star else '  ' if several else ''}" for each in lines]
        rows.append(Row((figure.heading, *cells)))
    columns = [TableColumn(""), *(TableColumn(f"{each.label}  " if several else "", True) for each in runs)]
    yield Table(tuple(columns), (RowGroup(tuple(rows)),))
    if any(each.unpriced for each in sums):
        note = "some machines have no declared price: they are excluded from the cost"
        yield ReportNotes((ReportNote("note", note),))
    if several and any(best(figure, sums) for figure in FIGURES):
        yield line("* best value in the row", "dim")


def _of_one(run: Simulated, is_one_of_several: bool) -> Iterator[Block]:
    parts: list[tuple[str, tuple[Block, ...]]] = []
    if run.sums.pools:
        table = Table(_POOL_COLUMNS, (RowGroup(tuple(_pool(each) for each in run.sums.pools)),))
        parts.append(("Pools", (table,)))
    if item_list := story(run):
        parts.append(("Events", (item_list,)))
    if run.expectations:
        parts.append(("Expected", (ItemList(tuple(_expected(run))),)))
    for heading, blocks in parts:
        yield Blank()
        yield Section(f"{heading}, {run.label}" if is_one_of_several else heading, blocks)
    if not run.failed and run.expectations and not is_one_of_several:
        yield Blank()
        yield line(f"{counted(len(run.expectations), 'expectation')} met, no safety rule broken.", "good")


def _pool(pool: PoolSum) -> Row:
    used = 1_000 * pool.gpu_ms_used // pool.gpu_ms if pool.gpu_ms else 0
    nodes = str(pool.nodes_first), str(pool.nodes_last)
    hours = f"{pool.gpu_ms / _HOUR_MS:,.1f}"
    return Row((pool.pool or "no pool", *nodes, hours, percent(used), dollars(pool.micro_dollars)))


def _expected(run: Simulated) -> Iterator[Item]:
    for each in run.expectations:
        title = f"{each.text}, found {each.figure}"
        yield Item("✓", title, tone="good") if each.is_met else Item("✗", title, tone="bad")


# --- Failures of simulations for pipelines: unmet expectations and broken safety rules.

UNMET, UNSAFE = "ExpectationFailed", "Unsafe"
TITLES = ((UNMET, "An expectation of the scenario was not met"), (UNSAFE, "A safety rule was broken"))


def who(run: Simulated) -> str:
    """Prefix that names the simulation, if there are several."""
    return f"{run.label}: " if run.label else ""


def _findings(run: Simulated) -> Iterator[Finding]:
    """In report order; they refer to the scenario, not to a policy line."""
    for each in run.broken:
        text = f"{who(run)}{each.rule}: {each.sentence} ({clock(each.at, run.start)}, {each.event})"
        yield Finding("", 0, 0, UNSAFE, text, subject=f"{who(run)}{each.rule}")
    for judged in run.expectations:
        if not judged.is_met:
            text = f"{who(run)}{judged.text}, found {judged.figure}"
            yield Finding("", 0, 0, UNMET, text, subject=f"{who(run)}{judged.text}")


# --- Events of a simulation in a few lines: policies in force, and actions of the controller.

MOST_MOMENTS = 40


def story(simulated: Simulated) -> ItemList | None:
    """The first times with actions or faults."""
    moments = sorted([*_from_outside(simulated), *_steps(simulated)], key=lambda each: each[0])
    if not moments:
        return None
    items = [item for _, item in moments[:MOST_MOMENTS]]
    if len(moments) > MOST_MOMENTS:
        items.append(Item("…", f"{len(moments) - MOST_MOMENTS} more moments: {_in_json(simulated)}"))
    return ItemList(tuple(items))


def _in_json(simulated: Simulated) -> str:
    """Where omitted events are available."""
    writes, happenings = sum(each.did_more for each in simulated.steps), simulated.happenings_more
    left_out = [counted(writes, "write")] if writes else []
    if happenings:
        left_out.append("1 fault or edit" if happenings == 1 else f"{happenings} faults and edits")
    return f"-o json lists them, except {listed(left_out)}" if left_out else "-o json lists all of them"


_HARMFUL: tuple[str, Tone] = ("!", "bad")
_HARMLESS: tuple[str, Tone] = ("+", "good")
_Moment = tuple[tuple[Instant, int], Item]


def _from_outside(simulated: Simulated) -> Iterator[_Moment]:
    """Policies that come into force, faults and edits, and broken safety rules."""
    for change in simulated.revisions[1:]:
        revision = short_revision(change.revision) or "other policies"
        yield (change.at, 0), Item("~", f"{clock(change.at, simulated.start)}  {revision} is now in force", tone="warn")
    for happening in simulated.happenings:
        yield (happening.at, 0), Item("*", f"{clock(happening.at, simulated.start)}  {happening.text}", tone="warn")
    for each in simulated.broken:
        title = f"{clock(each.at, simulated.start)}  {each.rule}"
        details = (Detail(each.sentence), Detail(f"event: {each.event}"))
        yield (each.at, 2), Item("!", title, details=details, tone="bad")


def _steps(simulated: Simulated) -> Iterator[_Moment]:
    before: Instant = simulated.start
    for step in simulated.steps:
        if step.did or step.evicted or step.lost:
            at = step.did[0].at if step.did else before
            title = f"{clock(at, simulated.start)}  {', '.join(_happened(step))}"
            mark, tone = _HARMFUL if step.evicted or step.lost else _HARMLESS
            yield (at, 1), Item(mark, title, details=tuple(map(Detail, _did(step))), tone=tone)
        before = step.at


def _happened(step: TimelineStep) -> Iterator[str]:
    if number := len(step.did) + step.did_more:
        yield counted(number, "write")
    amounts = (
        (step.evicted, "pod", "evicted"),
        (step.lost, "pod", "lost"),
        (step.bought, "node", "bought"),
        (step.removed, "node", "removed"),
    )
    yield from (f"{counted(number, noun)} {verb}" for number, noun, verb in amounts if number)


def _did(step: TimelineStep) -> Iterator[str]:
    """Writes, equal ones grouped."""
    alike = Counter((each.verb, each.subject.partition("/")[0], each.reason) for each in step.did)
    for (verb, kind, reason), number in alike.items():
        one = next(each.subject for each in step.did if (each.verb, each.reason) == (verb, reason))
        what = one if number == 1 else f"{number} {kind}s"
        yield f"{verb} {what}: {reason}"
    if step.did_more:
        yield f"and {counted(step.did_more, 'more write')}"


# --- Forecast: simulation of a plan, and its report.

WITHOUT, WITH, APPROVED = "without this change", "with this change", "once approved"


class Forecast(msgspec.Struct, frozen=True):
    """Simulations of the same cluster, with the same load, for the same time."""

    after: Simulated  # with the planned policies
    before: Simulated | None = None  # with the policies of the base, if any
    approved: Simulated | None = None  # as if guards held nothing, if guards hold something

    @property
    def runs(self) -> tuple[Simulated, ...]:
        return tuple(each for each in (self.before, self.after, self.approved) if each is not None)

    @property
    def seconds(self) -> int:
        return (self.after.end - self.after.start) // 1_000


def with_forecast(document: ReportDocument, forecast: Forecast) -> ReportDocument:
    """The report of a plan, with its forecast."""
    heading = f"The next {span(forecast.seconds)}, if the present load continues"
    section = Section(heading, tuple(_forecast_blocks(forecast)))
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


def _forecast_blocks(forecast: Forecast) -> Iterator[Block]:
    yield from summary(forecast.runs)
    if forecast.approved is not None:
        held = counted(forecast.after.sums.held_by_guards, "decision")
        yield ReportNotes((ReportNote("note", f"guards hold {held}: the last column shows the result after approval"),))
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
