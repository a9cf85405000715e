"""The lines that sum a plan up: what it costs, how much changes, and digests to know it again by."""

from collections.abc import Iterator

from reconciler.model.revision import short_revision
from reconciler.plan.impact.blame import Blame
from reconciler.report.blocks import ReportNote, ReportNotes, TextLine, line
from reconciler.report.plans.changed import count
from reconciler.report.plans.impact import total_cost
from reconciler.report.plans.plan_json import change_digest
from reconciler.report.plans.planned import Cost, Planned
from reconciler.report.suppressed import conditions
from reconciler.report.wording import counted, dollars, short_digest


def cost_blocks(planned: Planned, blamed: Blame) -> tuple[TextLine | ReportNotes, ...]:
    """What the fleet comes to: nodes and GPUs where they change, and money where prices are known. Nothing where
    nothing happens to any node and no price is edited."""
    cost = total_cost(planned)
    if blamed == Blame() and not cost.repriced:
        return ()
    return *_fleet(planned), *_cost(planned, blamed, cost)


def _fleet(planned: Planned) -> Iterator[TextLine]:
    nodes, gpus = planned.nodes, planned.gpus
    if nodes.now == nodes.before == nodes.after:
        return
    sums = (
        ("now", nodes.now, gpus.now),
        ("without", nodes.before, gpus.before),
        ("with", nodes.after, gpus.after),
    )
    shown = [each for each in sums if each[0] != "without" or planned.base]
    yield TextLine(
        ("Fleet", *(f"{when} {counted(count, 'node')}, {counted(gpus, 'GPU')}" for when, count, gpus in shown))
    )


def _cost(planned: Planned, blamed: Blame, cost: Cost) -> Iterator[TextLine | ReportNotes]:
    """Nothing where no prices are known."""
    if cost == Cost():
        return
    sums = (("now", cost.now), ("without", cost.without), ("with", cost.with_change))
    parts = tuple(f"{when} {dollars(amount)}/h" for when, amount in sums if when != "without" or planned.base)
    is_one = cost.now == cost.without == cost.with_change
    if is_one:
        parts = (f"{dollars(cost.now)}/h" if _moves_unpriced(planned, blamed) else f"{dollars(cost.now)}/h, unchanged",)
    yield TextLine(("Cost", *parts, *_committed(cost, is_one)))
    notes = []
    if cost.repriced:
        before = dollars(cost.now - cost.repriced)
        text = f"by the prices and commitments before this change the same nodes cost {before}/h now."
        notes.append(ReportNote("note", text))
    if unpriced := sum(pool.unpriced for pool in planned.pools):
        notes.append(ReportNote("note", f"{counted(unpriced, 'node')} without a declared price: not in the cost."))
    if notes:
        yield ReportNotes(tuple(notes))


def _moves_unpriced(planned: Planned, blamed: Blame) -> bool:
    """Whether the bill changes by what nobody knows."""
    moved = (*blamed.causes, *blamed.spared, *(() if planned.base else blamed.without))
    return any(each.unpriced for each in moved)


def _committed(cost: Cost, is_one: bool) -> Iterator[str]:
    if cost.committed:
        yield f"(of {'it' if is_one else 'each'}, {dollars(cost.committed)}/h is paid whether nodes run or not)"


def totals(planned: Planned) -> TextLine:
    """The change is the same however the fleet moves, where it was compared with a base; else it is of this cluster."""
    number = count(planned)
    if planned.base is None:
        text = f"{counted(number.change, 'object')} to change, {number.add} to add, {number.remove} to delete"
    else:
        policies = "1 policy" if number.change == 1 else f"{number.change} policies"
        text = f"{policies} changed, {number.add} added, {number.remove} removed"
    if held := len(planned.held):
        text += f", {held} held"
        if blocked := len(planned.blocked):
            text += f" ({blocked} blocked)"
    if waiting := len(planned.waiting):
        text += f", {waiting} waiting"
    text += "".join(f"; {more} more if {clause}" for more, clause in conditions(number.supposed))
    if planned.base is None:
        return line(f"{text}. Plan {short_digest(planned.plan.digest)}, of the cluster as it was seen.", "strong")
    return line(f"{text}. Change {short_digest(change_digest(planned))}, same however the fleet moves.", "strong")


def no_changes(planned: Planned) -> str:
    """What was compared, when nothing came of it."""
    setting = planned.setting
    compared = f"{setting.policies} was compared with "
    if setting.base_revision:
        compared += f"{short_revision(setting.base_revision)} and with "
    among = " in what could be read" if planned.unread else ""
    return f"No changes{among}. {compared}{setting.cluster_text}, reconciler {setting.tool_version}."
