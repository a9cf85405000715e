"""Simulations as a document: whether they went well, their figures beside one another, and what happened."""

from collections.abc import Iterator, Sequence

from reconciler.model.human_time import clock, span
from reconciler.model.instant import timestamp
from reconciler.report.blocks import (
    Blank,
    Block,
    Item,
    ItemList,
    ReportNote,
    ReportNotes,
    Row,
    RowGroup,
    Section,
    Table,
    TableColumn,
    line,
)
from reconciler.report.document import CheckedCount, ReportDocument
from reconciler.report.simulation.figures import COMPARED, FIGURES, best
from reconciler.report.simulation.findings import TITLES, findings_of, who
from reconciler.report.simulation.simulated import PoolSum, Simulated
from reconciler.report.simulation.simulated_json import payload
from reconciler.report.simulation.story import story
from reconciler.report.wording import counted, dollars, listed

_HOUR_MS = 3_600_000
_POOL_COLUMNS = (
    TableColumn("pool"),
    TableColumn("nodes at first", True),
    TableColumn("at the end", True),
    TableColumn("usable GPU-hours", True),
    TableColumn("in use", True),
    TableColumn("cost", True),
)


def simulated_document(runs: Sequence[Simulated], tool_version: str) -> ReportDocument:
    """One simulation, or several of the same scenario with other policies."""
    first = runs[0]
    checked = sum(len(each.expectations) for each in runs) + len(runs)
    return ReportDocument(
        command="simulate",
        title=f"Simulation of {first.name}",
        tool_version=tool_version,
        blocks=tuple(_blocks(runs, tool_version)),
        payload=payload(runs, tool_version),
        otherwise="Nothing was simulated.",
        judged=CheckedCount(checked, "expectation", "failure"),
        findings=(findings := findings_of(runs)),
        annotations=findings,
        titles=TITLES,
    )


def headline(simulated: Simulated, tool_version: str) -> str:
    """What was simulated, for how long, and from which seed."""
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
        for judged in run.expectations:
            if not judged.is_met:
                yield line(f"FAILED: {who(run)}{judged.text}, found {judged.figure}", "bad")


def broken_lines(run: Simulated) -> Iterator[Block]:
    """The first rule of safety that was broken, if any was."""
    for each in run.broken[:1]:
        more = f", and {len(run.broken) - 1} more" if len(run.broken) > 1 else ""
        text = f"UNSAFE: {who(run)}{each.rule}: {each.sentence} ({clock(each.at, run.start)}, {each.event}){more}"
        yield line(text, "bad")


def _compared(runs: Sequence[Simulated]) -> Iterator[Block]:
    """Which is better in what."""
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
            yield line(f"{run.label}: {'; '.join(lines) or 'behind in all of them'}", "bad" if run.failed else "plain")


def summary(runs: Sequence[Simulated]) -> Iterator[Block]:
    """Figures in rows, simulations in columns; the best of each row bears a star."""
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
        yield ReportNotes((ReportNote("note", "some machines have no declared price: they are not in the cost"),))
    if several and any(best(figure, sums) for figure in FIGURES):
        yield line("* the best of its line", "dim")


def _of_one(run: Simulated, is_one_of_several: bool) -> Iterator[Block]:
    parts: list[tuple[str, tuple[Block, ...]]] = []
    if run.sums.pools:
        table = Table(_POOL_COLUMNS, (RowGroup(tuple(_pool(each) for each in run.sums.pools)),))
        parts.append(("Pools", (table,)))
    if item_list := story(run):
        parts.append(("What happened", (item_list,)))
    if run.expectations:
        parts.append(("Expected", (ItemList(tuple(_expected(run))),)))
    for heading, blocks in parts:
        yield Blank()
        yield Section(f"{heading}, {run.label}" if is_one_of_several else heading, blocks)
    if not run.failed and run.expectations and not is_one_of_several:
        yield Blank()
        yield line(f"{counted(len(run.expectations), 'expectation')} met, no rule of safety broken.", "good")


def _pool(pool: PoolSum) -> Row:
    used = 1_000 * pool.gpu_ms_used // pool.gpu_ms if pool.gpu_ms else 0
    return Row(
        (
            pool.pool or "no pool",
            str(pool.nodes_first),
            str(pool.nodes_last),
            f"{pool.gpu_ms / _HOUR_MS:,.1f}",
            f"{used // 10}.{used % 10} %",
            dollars(pool.micro_dollars),
        )
    )


def _expected(run: Simulated) -> Iterator[Item]:
    for each in run.expectations:
        mark, tone = ("✓", "good") if each.is_met else ("✗", "bad")
        yield Item(mark, f"{each.text}, found {each.figure}", tone="good" if tone == "good" else "bad")
