"""The lines that sum a plan up: what it costs, how much changes, and digests to know it again by."""

from collections.abc import Iterator

from reconciler.model.revision import short_revision
from reconciler.report.blocks import Line, Note, Notes, line
from reconciler.report.plans.blame import Blame
from reconciler.report.plans.changed import count
from reconciler.report.plans.impact import total_cost
from reconciler.report.plans.plan_json import change_digest
from reconciler.report.plans.planned import Cost, Planned
from reconciler.report.wording import counted, dollars, short_digest


def cost_blocks(planned: Planned, blamed: Blame) -> tuple[Line | Notes, ...]:
    """Nothing where no prices are known."""
    cost = total_cost(planned)
    if cost == Cost():
        return ()
    sums = (("now", cost.now), ("without", cost.without), ("with", cost.with_change))
    parts = tuple(f"{when} {dollars(amount)}/h" for when, amount in sums if when != "without" or planned.base)
    is_one = cost.now == cost.without == cost.with_change
    if is_one:
        parts = (f"{dollars(cost.now)}/h" if _moves_unpriced(planned, blamed) else f"{dollars(cost.now)}/h, unchanged",)
    told = Line(("Cost", *parts, *_committed(cost, is_one)))
    unpriced = sum(pool.unpriced for pool in planned.pools)
    if not unpriced:
        return (told,)
    return told, Notes((Note("note", f"{counted(unpriced, 'node')} without a declared price: not in the cost."),))


def _moves_unpriced(planned: Planned, blamed: Blame) -> bool:
    """Whether the bill changes by what nobody knows."""
    moved = (*blamed.because, *blamed.spared, *(() if planned.base else blamed.without))
    return any(each.unpriced for each in moved)


def _committed(cost: Cost, is_one: bool) -> Iterator[str]:
    if cost.committed != cost.committed_with:
        before, after = dollars(cost.committed), dollars(cost.committed_with)
        yield f"(of it, {before}/h before and {after}/h with this change is paid whether nodes run or not)"
    elif cost.committed:
        yield f"(of {'it' if is_one else 'each'}, {dollars(cost.committed)}/h is paid whether nodes run or not)"


def totals(planned: Planned) -> Line:
    """The change is the same however the fleet moves, where it was compared with a base; else it is of this cluster."""
    number = count(planned)
    if planned.base is None:
        told = f"{counted(number.change, 'object')} to change, {number.add} to add, {number.remove} to delete"
    else:
        policies = "1 policy" if number.change == 1 else f"{number.change} policies"
        told = f"{policies} changed, {number.add} added, {number.remove} removed"
    if held := len(planned.held):
        told += f", {held} held"
        if blocked := len(planned.blocked):
            told += f" ({blocked} blocked)"
    if number.would:
        told += f"; {number.would} more if {'its pool' if number.would == 1 else 'their pools'} did not only observe"
    if planned.base is None:
        return line(f"{told}. Plan {short_digest(planned.plan.digest)}, of the cluster as it was seen.", "strong")
    return line(f"{told}. Change {short_digest(change_digest(planned))}, same however the fleet moves.", "strong")


def no_changes(planned: Planned) -> str:
    """What was compared, when nothing came of it."""
    setting = planned.setting
    compared = f"{setting.policies} was compared with "
    if setting.base_revision:
        compared += f"{short_revision(setting.base_revision)} and with "
    among = " in what could be read" if planned.unread else ""
    return f"No changes{among}. {compared}{setting.seen_cluster}, reconciler {setting.tool_version}."
