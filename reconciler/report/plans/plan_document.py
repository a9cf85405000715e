"""A plan as a document: what changes first, then what that does, what it costs, and what is held."""

from collections.abc import Iterator, Sequence

from reconciler.plan.guards.reasons import HeldByGuard, OverPlanLimit
from reconciler.plan.holds.standstill import PLANNER as TAINTS
from reconciler.plan.holds.standstill import StandingStill
from reconciler.plan.impact.blame import Blame, blame
from reconciler.plan.scaling.reasons import PLANNER as SCALING
from reconciler.report.blocks import Blank, Block, Detail, Item, ItemList, ReportNote, ReportNotes, Section, line
from reconciler.report.decision_text import MOST_ALIKE, DecisionText, decision_items
from reconciler.report.document import CheckedCount, ReportDocument
from reconciler.report.plans.beside_lines import annotations, findings
from reconciler.report.plans.changed import anyway, changed_items
from reconciler.report.plans.guard_section import blocked_lines, guard_blocks
from reconciler.report.plans.plan_json import payload
from reconciler.report.plans.planned import Planned
from reconciler.report.plans.pool_section import pool_sections
from reconciler.report.plans.totals import cost_blocks, no_changes, totals
from reconciler.report.setting import unread_notes
from reconciler.report.wording import counted, listed


def plan_document(planned: Planned) -> ReportDocument:
    """One reassuring line where nothing changes and nothing is to be minded."""
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
    """Parts with something to say, a blank line between them."""
    parts = (
        tuple(_changes(planned, blamed)),
        tuple(_anyway(planned)),
        tuple(_pools(planned, blamed)),
        cost_blocks(planned, blamed),
        guard_blocks(planned),
        tuple(_held(planned)),
        tuple(_waiting(planned)),
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
    """The digest whole: a part of it could be met by another file."""
    if planned.saved_digest:
        yield line(f"Saved plan {planned.saved_digest}: apply exactly this one with --digest.")


def _warnings(planned: Planned) -> Iterator[Block]:
    warnings = (ReportNote("warning", each) for each in planned.warnings)
    notes = (*warnings, *unread_notes(planned.unread), *(ReportNote("note", each) for each in planned.notices))
    if notes:
        yield ReportNotes(notes)


def _changes(planned: Planned, blamed: Blame) -> Iterator[Block]:
    if items := tuple(changed_items(planned, blamed)):
        yield ItemList(items)


def _anyway(planned: Planned) -> Iterator[Block]:
    if decision_texts := anyway(planned):
        items = ItemList(tuple(decision_items(decision_texts, planned.setting.now)))
        yield Section("Done without this change too", (items,), folded=True)


def _pools(planned: Planned, blamed: Blame) -> Iterator[Block]:
    for number, section in enumerate(pool_sections(planned, blamed)):
        if number:
            yield Blank()
        yield section


def _held(planned: Planned) -> Iterator[Block]:
    if planned.held:
        yield Section("Held", (ItemList(tuple(_held_items(planned))),))


def _waiting(planned: Planned) -> Iterator[Block]:
    if planned.waiting:
        yield Section("Waiting", (ItemList(tuple(decision_items(planned.waiting, planned.setting.now))),))


def _held_items(planned: Planned) -> Iterator[Item]:
    """Nodes that a guard holds in one line a pool, since the guard's section says what is counted. So are nodes whose
    taints stay."""
    of_guards = [each for each in planned.held if _is_of_pool(each) and _is_by_guard(each)]
    staying = [each for each in planned.held if _is_of_pool(each) and each.decision.planner == TAINTS]
    others = [each for each in planned.held if each not in of_guards and each not in staying]
    yield from decision_items(others, planned.setting.now)
    yield from _staying_items(staying)
    yield from _guarded_items(of_guards)


def _guarded_items(of_guards: Sequence[DecisionText]) -> Iterator[Item]:
    """One for each pool, planner and guard."""
    alike: dict[tuple[str, bool, str], list[DecisionText]] = {}
    for each in of_guards:
        decision = each.decision
        if isinstance(facts := decision.reason.facts, HeldByGuard):
            key = decision.pool, decision.planner == SCALING, facts.guard.title
            alike.setdefault(key, []).append(each)
    for (pool, is_scaled, guard), group in sorted(alike.items()):
        is_one = len(group) == 1
        what, becomes = ("empty", "marked to leave") if is_scaled else ("not needed", "drained")
        title = f"{counted(len(group), 'Node')} of {pool}, which {'is' if is_one else 'are'} {what}"
        details = [Detail(f"{becomes} once {guard} lets {'it' if is_one else 'them'}")]
        if any(isinstance(each.decision.reason.facts, OverPlanLimit) for each in group):
            details.append(Detail("perPlan holds all that the plan takes, until the plan takes less or is approved"))
        yield Item("!", title, group[0].place, tuple(details), "warn")


def _is_by_guard(decision_text: DecisionText) -> bool:
    return isinstance(decision_text.decision.reason.facts, HeldByGuard)


def _is_of_pool(decision_text: DecisionText) -> bool:
    return decision_text.decision.subject.kind == "Node" and bool(decision_text.decision.pool)


def _staying_items(staying: Sequence[DecisionText]) -> Iterator[Item]:
    """One for each pool, reason and taint, with the first of the nodes as an example."""
    alike: dict[tuple[str, str, tuple[str, ...]], list[DecisionText]] = {}
    for each in staying:
        reason = each.decision.reason
        taints = reason.facts.taints if isinstance(reason.facts, StandingStill) else ()
        alike.setdefault((each.decision.pool, reason.code, taints), []).append(each)
    for (pool, _, _), group in alike.items():
        first, names = group[0], [each.decision.subject.name for each in group]
        if len(group) == 1:
            yield Item("!", first.decision.subject.title, first.place, (Detail(first.sentence),), "warn")
            continue
        more = [f"{len(names) - MOST_ALIKE} more"] if len(names) > MOST_ALIKE else []
        details = (Detail(listed([*names[:MOST_ALIKE], *more])), Detail(f"one of them: {first.sentence}"))
        yield Item("!", f"{len(group)} Nodes of {pool}", first.place, details, "warn")
