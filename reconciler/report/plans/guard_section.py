"""What guards say to a plan: that it is blocked, before all else; what each counted; and the ways on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.model.instant import clock
from reconciler.model.plan.guard_verdict import GuardCount, GuardVerdict, Measure, Needed
from reconciler.plan.guards.reasons import MEASURES, HeldByGuard
from reconciler.report.decision_text import DecisionText, place_of
from reconciler.report.document import Block, Row, RowGroup, Section, Table, TableColumn, TextLine, line
from reconciler.report.header import ReportHeader
from reconciler.report.plans.planned import Planned, beside_guards, is_blocking, reason_lines
from reconciler.report.wording import counted

# For a sentence, the gravest first.
_DONE: dict[Measure, str] = {
    "deleted_node_pools": "{counted} NodePools deleted",
    "disrupted_gpus": "{counted} GPUs in use would be disrupted",
    "removed_nodes": "{counted} nodes removed",
    "removed_percent": "{counted} % of the nodes of {pool} removed",
}
# As `reconciler approve` calls the ceilings.
OPTIONS: dict[Measure, str] = {
    "removed_nodes": "--removed-nodes",
    "removed_percent": "--removed-percent",
    "disrupted_gpus": "--disrupted-gpus",
    "deleted_node_pools": "--deleted-node-pools",
}
_COLUMNS = (TableColumn(""), TableColumn("", right=True), TableColumn(""), TableColumn(""))


def blocked_lines(planned: Planned) -> Iterator[TextLine]:
    """One a guard that holds something, and one for each other reason that blocks."""
    for each in planned.plan.guarded:
        if each.blocks:
            yield line(blocked_words(planned, each), "bad" if is_blocking(planned.decision_texts, each) else "warn")
    yield from reason_lines(beside_guards(planned.decision_texts))


def guard_blocks(planned: Planned) -> tuple[Block, ...]:
    """Of each guard that has something to count here."""
    shown = [each for each in planned.plan.guarded if each.held or each.exceeded or _counts_anything(each)]
    blocks: list[Block] = [_section(each) for each in shown]
    for each in shown:
        blocks += ways_on(planned, each)
    return tuple(blocks)


def ways_on(planned: Planned, guarded: GuardVerdict) -> Iterator[TextLine]:
    """What a person can do about what is held."""
    if not guarded.blocks:
        return
    ways = list(other_ways(planned.setting, guarded))
    approve = approve_words(planned.setting, guarded)
    if approve:
        yield line(f"Ways on: {'; '.join([*ways, 'or'])}" if ways else "Way on:")
        yield line(f"  {approve}")
    elif ways:
        yield line(f"Ways on: {'; '.join(ways)}")


def other_ways(setting: ReportHeader, guarded: GuardVerdict) -> Iterator[str]:
    """But for an approval."""
    yield from (f"{title} alone passes" for title in guarded.alone)
    if guarded.until is not None:
        yield f"there is room at {clock(guarded.until, setting.now)}"
    if guarded.by_the_hour:
        limits = ", ".join(guarded.by_the_hour)
        yield f"with perHour: {{{limits}}} in place of perPlan it goes bit by bit, as each hour has room"


def with_ways_on(
    setting: ReportHeader, guards: Sequence[GuardVerdict], decision_texts: Iterable[DecisionText]
) -> tuple[DecisionText, ...]:
    """The decisions, with the ways on as the remedy of those that a guard holds."""
    ways = {}
    for each in guards:
        approve = approve_words(setting, each)
        words = [*other_ways(setting, each), *([f"approve it: {approve}"] if approve else [])]
        ways[each.guard] = "; or ".join(words)
    return tuple(_with_remedy(each, ways) for each in decision_texts)


def _with_remedy(decision_text: DecisionText, ways: Mapping[str, str]) -> DecisionText:
    facts = decision_text.decision.reason.facts
    remedy = ways.get(facts.guard.name, "") if isinstance(facts, HeldByGuard) else ""
    return msgspec.structs.replace(decision_text, remedy=remedy) if remedy else decision_text


def approve_words(setting: ReportHeader, guarded: GuardVerdict) -> str:
    """The command that lets it pass: by the policies that cause it, or else by the revision; nothing where neither is
    known."""
    ceilings = [f"{OPTIONS[measure]} {ceiling}" for measure, ceiling in _ceilings(guarded.needed)]
    if not ceilings:
        return ""
    words = ["reconciler approve"]
    if setting.policies_from is not None and (guarded.needed_objects or guarded.needed_losses):
        words += [*guarded.needed_objects, *(f"--prune {each}" for each in guarded.needed_losses)]
        if guarded.needed_objects:
            words += [setting.policies_from, f"-e {setting.environment}"]
    elif setting.revision and not setting.is_claimed:
        words.append(setting.revision)
    else:
        return ""
    return " ".join(filter(None, [*words, f"--guard {guarded.guard}", *ceilings, "--expires 24h"]))


def _ceilings(needed: Needed) -> Iterator[tuple[Measure, int]]:
    found: dict[str, int | None] = msgspec.structs.asdict(needed)
    for measure in OPTIONS:
        ceiling = found[measure]
        if ceiling is not None:
            yield measure, ceiling


def blocked_words(planned: Planned, guarded: GuardVerdict) -> str:
    """In one line: which guard, until when, and what there is too much of."""
    until = "" if guarded.until is None else f" until there is room at {clock(guarded.until, planned.setting.now)}"
    text = f"by guard {guarded.guard}{until}: {'; '.join(_exceeded(guarded))}"
    return (
        f"BLOCKED {text}" if is_blocking(planned.decision_texts, guarded) else f"Held without this change too, {text}"
    )


def _exceeded(guarded: GuardVerdict) -> Iterator[str]:
    """Those of the plan where there are any; percent only where it says more than the number of nodes."""
    of_plan = [each for each in guarded.exceeded if each.period == "plan"]
    guard_counts = {each.measure: each for each in of_plan or guarded.exceeded}
    if "removed_nodes" in guard_counts:
        guard_counts.pop("removed_percent", None)
    for measure, words in _DONE.items():
        if each := guard_counts.get(measure):
            done = words.format(counted=each.counted, pool=each.pool)
            yield f"{done}{'' if each.period == 'plan' else ' in the hour'}, {each.allowed} allowed"


def _counts_anything(guarded: GuardVerdict) -> bool:
    return any(each.counted or each.expected for each in guarded.counts if each.period == "plan")


def _section(guarded: GuardVerdict) -> Section:
    place = place_of(guarded.origin)
    would = " (would: of pools that are only observed)" if guarded.would else ""
    heading = f"Guard {guarded.guard}{would}" + (f", {place}" if place else "")
    rows = tuple(_row(each, guarded) for each in guarded.counts)
    names = ", ".join(f"ChangeApproval/{each}" for each in guarded.approvals)
    approved = (line(f"Approved by {names}."),) if names else ()
    return Section(heading, (Table(_COLUMNS, (RowGroup(rows),)), *_too_large(guarded), *approved))


def _too_large(guarded: GuardVerdict) -> Iterator[TextLine]:
    """Nodes that no plan may drain without an approval, once their timers are over."""
    if number := guarded.too_large:
        exceed = "exceeds a limit by itself" if number == 1 else "exceed a limit each by itself"
        them = "it" if number == 1 else "them"
        yield line(f"{counted(number, 'node')} to be drained {exceed}: the guard will hold {them}.", "warn")


def _row(count: GuardCount, guarded: GuardVerdict) -> Row:
    verdict = ""
    if count.exceeded:
        verdict = "approved" if guarded.approvals and not guarded.blocks else "EXCEEDED"
    name = MEASURES[count.measure] + (" in the hour" if count.period == "hour" else "")
    parts = ", ".join(f"{number} {part}" for part, number in count.parts)
    text = f"of {count.pool}" if count.pool and (count.counted or count.expected) else parts
    return Row((name, f"{count.counted} of {count.allowed}", verdict, ", ".join(filter(None, (text, _later(count))))))


def _later(count: GuardCount) -> str:
    """40 more to be drained later, in several plans."""
    if not count.expected:
        return ""
    exceeds = count.counted + count.expected > count.allowed
    period = "several plans" if count.period == "plan" else "several hours"
    return f"{count.expected} more to be drained later" + (f", in {period}" if exceeds else "")
