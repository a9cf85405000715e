"""The lines that sum a plan up: what it costs, how much changes, and digests to know it again by."""

from reconciler.report.blocks import Line, Note, Notes, line
from reconciler.report.plans.changed import count
from reconciler.report.plans.impact import total_cost
from reconciler.report.plans.plan_json import change_digest
from reconciler.report.plans.planned import Cost, Planned
from reconciler.report.wording import counted, dollars, short, short_digest


def cost_blocks(planned: Planned) -> tuple[Line | Notes, ...]:
    """Nothing where no prices are known."""
    cost = total_cost(planned)
    if cost == Cost():
        return ()
    if cost.now == cost.without == cost.with_change:
        parts: tuple[str, ...] = (f"{dollars(cost.now)}/h, unchanged",)
    else:
        sums = (("now", cost.now), ("without", cost.without), ("with", cost.with_change))
        parts = tuple(f"{when} {dollars(amount)}/h" for when, amount in sums if when != "without" or planned.base)
    if cost.committed:
        parts += (f"({dollars(cost.committed)}/h of each is committed)",)
    told = Line(("Cost", *parts))
    unpriced = sum(pool.unpriced for pool in planned.pools)
    if not unpriced:
        return (told,)
    return told, Notes((Note("note", f"{counted(unpriced, 'node')} without a declared price: not in the cost."),))


def totals(planned: Planned) -> Line:
    """The change is the same however the fleet moves, where it was compared with a base; else it is of this cluster."""
    number = count(planned)
    told = f"{number.change} to change, {number.add} to add, {number.remove} to delete"
    if held := len(planned.held):
        told += f", {held} held"
    if planned.base is None:
        return line(f"{told}. Plan {short_digest(planned.plan.digest)}, of the cluster as it was seen.", "strong")
    return line(f"{told}. Change {short_digest(change_digest(planned))}, same however the fleet moves.", "strong")


def no_changes(planned: Planned) -> str:
    """What was compared, when nothing came of it."""
    setting = planned.setting
    compared = f"{setting.policies} was compared with "
    if setting.base_revision:
        compared += f"{short(setting.base_revision)} and with "
    among = " in what could be read" if planned.unread else ""
    return f"No changes{among}. {compared}{setting.seen_cluster}, reconciler {setting.tool_version}."
