"""Report of a plan as a document: changes first, then their effect, cost, and holds."""

from collections.abc import Iterable, Iterator, Sequence

from reconciler.model.bundle import short_revision
from reconciler.plan.guards.reasons import HeldByGuard, OverPlanLimit
from reconciler.plan.holds.standstill import PLANNER as TAINTS
from reconciler.plan.holds.standstill import StandingStill
from reconciler.plan.impact.blame import Blame, blame
from reconciler.plan.impact.pricing import Bills
from reconciler.plan.scaling.reasons import PLANNER as SCALING
from reconciler.report.decision_text import MOST_ALIKE, DecisionText, conditions, decision_items
from reconciler.report.document import (
    Blank,
    Block,
    CheckedCount,
    Detail,
    Item,
    ItemList,
    ReportDocument,
    ReportNote,
    ReportNotes,
    Section,
    TextLine,
    line,
)
from reconciler.report.header import unread_notes
from reconciler.report.plans.beside_lines import annotations, findings
from reconciler.report.plans.changed import anyway, changed_items, count
from reconciler.report.plans.guard_section import blocked_lines, guard_blocks
from reconciler.report.plans.plan_json import change_digest, payload, total_cost
from reconciler.report.plans.planned import Planned, guard_of
from reconciler.report.plans.pool_section import pool_sections
from reconciler.report.wording import counted, dollars, grouped, listed, short_digest


def plan_document(planned: Planned) -> ReportDocument:
    """The document; one line if nothing changes and there are no notices."""
    blamed = blame(planned.plan, planned.base)
    subjects = {each.decision.subject for each in planned.decision_texts}
    return ReportDocument(
        command="plan",
        title=f"Plan of {planned.setting.policies}",
        tool_version=planned.setting.tool_version,
        blocks=tuple(_blocks(planned, blamed)),
        payload=payload(planned),
        otherwise=no_changes(planned),
        judged=CheckedCount(len(subjects), "object", "hold"),
        findings=findings(planned, blamed),
        annotations=annotations(planned, blamed),
    )


def _blocks(planned: Planned, blamed: Blame) -> Iterator[Block]:
    """Sections with content, separated by blank lines."""
    changes, now = tuple(changed_items(planned, blamed)), planned.setting.now
    parts = (
        (ItemList(changes),) if changes else (),
        _listed("Done also without this change", decision_items(anyway(planned), now), folded=True),
        tuple(_pools(planned, blamed)),
        cost_blocks(planned, blamed),
        guard_blocks(planned),
        _listed("Held", _held_items(planned)),
        _listed("Waiting", decision_items(planned.waiting, now)),
    )
    yield from blocked_lines(planned)
    yield from _warnings(planned)
    if not any(parts):
        yield line(no_changes(planned), "plain" if planned.unread else "good")
        yield from _saved(planned)
        return
    yield line(planned.setting.headline)
    for blocks in filter(None, parts):
        yield Blank()
        yield from blocks
    yield Blank()
    yield totals(planned)
    yield from _saved(planned)


def _saved(planned: Planned) -> Iterator[Block]:
    """The full digest: another file could match a part of it."""
    if planned.saved_digest:
        yield line(f"Digest of the saved plan, for `reconciler apply FILE --digest`: {planned.saved_digest}")


def _warnings(planned: Planned) -> Iterator[Block]:
    warnings = (ReportNote("warning", each) for each in planned.warnings)
    notes = (*warnings, *unread_notes(planned.unread), *(ReportNote("note", each) for each in planned.notices))
    if notes:
        yield ReportNotes(notes)


def _listed(heading: str, items: Iterable[Item], *, folded: bool = False) -> tuple[Block, ...]:
    """A section with a list of objects; empty without objects."""
    item_list = ItemList(tuple(items))
    return (Section(heading, (item_list,), folded=folded),) if item_list.items else ()


def _pools(planned: Planned, blamed: Blame) -> Iterator[Block]:
    for number, section in enumerate(pool_sections(planned, blamed)):
        if number:
            yield Blank()
        yield section


def _held_items(planned: Planned) -> Iterator[Item]:
    """Nodes held by a guard in one line per pool, since the section of the guard has the counts. The same for nodes
    whose taints stay."""
    of_pools = [each for each in planned.held if each.decision.subject.kind == "Node" and each.decision.pool]
    of_guards = [each for each in of_pools if isinstance(each.decision.reason.facts, HeldByGuard)]
    staying = [each for each in of_pools if each.decision.planner == TAINTS]
    others = [each for each in planned.held if each not in of_guards and each not in staying]
    yield from decision_items(others, planned.setting.now)
    yield from _staying_items(staying)
    yield from _guarded_items(of_guards)


def _guarded_items(of_guards: Sequence[DecisionText]) -> Iterator[Item]:
    """One item per pool, planner and guard."""
    alike = grouped(
        of_guards, lambda each: (each.decision.pool, each.decision.planner == SCALING, f"ChangeGuard/{guard_of(each)}")
    )
    for (pool, is_scaled, guard), group in sorted(alike.items()):
        what, becomes = ("empty", "marked for deletion") if is_scaled else ("unneeded", "drained")
        title = f"{counted(len(group), f'{what} Node')} of {pool}"
        details = [Detail(f"to be {becomes} when {guard} allows it")]
        if any(isinstance(each.decision.reason.facts, OverPlanLimit) for each in group):
            details.append(Detail("perPlan holds all removals of the plan, until the plan removes less or is approved"))
        yield Item("!", title, group[0].place, tuple(details), "warn")


def _staying_items(staying: Sequence[DecisionText]) -> Iterator[Item]:
    """One item per pool, reason and taint, with the first node as an example."""

    def key(decision_text: DecisionText) -> tuple[str, str, tuple[str, ...]]:
        reason = decision_text.decision.reason
        taints = reason.facts.taints if isinstance(reason.facts, StandingStill) else ()
        return decision_text.decision.pool, reason.code, taints

    for (pool, _, _), group in grouped(staying, key).items():
        first, names = group[0], [each.decision.subject.name for each in group]
        if len(group) == 1:
            yield Item("!", first.decision.subject.title, first.place, (Detail(first.sentence),), "warn")
            continue
        more = [f"{len(names) - MOST_ALIKE} more"] if len(names) > MOST_ALIKE else []
        details = (Detail(listed([*names[:MOST_ALIKE], *more])), Detail(f"example: {first.sentence}"))
        yield Item("!", f"{len(group)} Nodes of {pool}", first.place, details, "warn")


# --- Summary lines: cost, number of changes, and digests that identify the plan or the change.


def cost_blocks(planned: Planned, blamed: Blame) -> tuple[TextLine | ReportNotes, ...]:
    """Totals of the fleet: nodes and GPUs if they change, cost if prices are known. Empty if no node and no price
    changes."""
    cost = total_cost(planned)
    if blamed == Blame() and not cost.repriced:
        return ()
    return *_fleet(planned), *_cost(planned, blamed, cost)


def _fleet(planned: Planned) -> Iterator[TextLine]:
    nodes, gpus = planned.nodes, planned.gpus
    if nodes.now == nodes.before == nodes.after:
        return
    now, without, after = _cases(planned)
    sums = ((now, nodes.now, gpus.now), (without, nodes.before, gpus.before), (after, nodes.after, gpus.after))
    shown = [each for each in sums if each[0]]
    yield TextLine(
        (
            "Pools of these policies",
            *(f"{when} {counted(count, 'node')}, {counted(gpus, 'GPU')}" for when, count, gpus in shown),
        )
    )


def _cases(planned: Planned) -> tuple[str, str, str]:
    """Titles of the totals: now, without the change of a pull request (else empty), and with what is planned."""
    return ("now", "without this change", "with this change") if planned.base else ("now", "", "with this plan")


def _cost(planned: Planned, blamed: Blame, cost: Bills) -> Iterator[TextLine | ReportNotes]:
    """The cost; empty without known prices."""
    if cost == Bills(unpriced=cost.unpriced):
        return
    now, without, after = _cases(planned)
    sums = ((now, cost.now), (without, cost.without), (after, cost.with_change))
    parts = tuple(f"{when} {dollars(amount)}/h" for when, amount in sums if when)
    is_one = cost.now == cost.without == cost.with_change
    if is_one:
        # Nodes without a price change the cost by an unknown amount.
        moved = (*blamed.causes, *blamed.spared, *(() if planned.base else blamed.without))
        parts = (f"{dollars(cost.now)}/h{'' if any(each.unpriced for each in moved) else ', unchanged'}",)
    if cost.committed:
        includes = "includes" if is_one else "each includes"
        parts += (f"({includes} {dollars(cost.committed)}/h that is paid whether nodes run or not)",)
    yield TextLine(("Cost", *parts))
    notes = []
    if cost.repriced:
        before = dollars(cost.now - cost.repriced)
        text = f"with the prices and commitments before this change, the same nodes cost {before}/h now."
        notes.append(ReportNote("note", text))
    if unpriced := cost.unpriced:
        notes.append(
            ReportNote("note", f"{counted(unpriced, 'node')} without a declared price: excluded from the cost.")
        )
    if notes:
        yield ReportNotes(tuple(notes))


def totals(planned: Planned) -> TextLine:
    """With a base, counts of changed policies, which do not depend on the cluster; otherwise counts of objects in this
    cluster."""
    number, supposed = count(planned)
    if planned.base is None:
        text = f"{counted(number['change'], 'object')} to change, {number['add']} to add, {number['remove']} to delete"
    else:
        policies = "1 policy" if number["change"] == 1 else f"{number['change']} policies"
        text = f"{policies} changed, {number['add']} added, {number['remove']} removed"
    if held := len(planned.held):
        text += f", {held} held"
        if blocked := len(planned.blocked):
            text += f" ({blocked} blocked, exit code 4)"
    if waiting := len(planned.waiting):
        text += f", {waiting} waiting"
    text += "".join(f"; {more} suppressed (would apply if {clause})" for more, clause in conditions(supposed))
    if planned.base is None:
        return line(f"{text}. Plan {short_digest(planned.plan.digest)}, for this snapshot of the cluster.", "strong")
    digest = short_digest(change_digest(planned))
    return line(f"{text}. Change {digest}, independent of the state of the cluster.", "strong")


def no_changes(planned: Planned) -> str:
    """Text for a plan without changes: what was compared."""
    setting = planned.setting
    compared = f"{setting.policies} was compared with "
    if setting.base_revision:
        compared += f"{short_revision(setting.base_revision)} and with "
    among = " in the objects that could be read" if planned.unread else ""
    return f"No changes{among}. {compared}{setting.cluster_text}, reconciler {setting.tool_version}."
