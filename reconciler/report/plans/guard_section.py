"""Guards in the report of a plan: whether the plan is blocked, the counts, and the possible remedies."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reconciler.model.instant import clock
from reconciler.model.plan.guard_verdict import GuardCount, GuardVerdict, Measure
from reconciler.plan.guards.reasons import MEASURES
from reconciler.report.decision_text import DecisionText, place_of
from reconciler.report.document import Block, Row, RowGroup, Section, Table, TableColumn, TextLine, line
from reconciler.report.header import ReportHeader
from reconciler.report.plans.planned import Planned, beside_guards, guard_of, is_blocking, reason_lines
from reconciler.report.wording import counted

# For a sentence, most severe first.
_DONE: dict[Measure, str] = {
    "deleted_node_pools": "{counted} NodePools deleted",
    "disrupted_gpus": "{counted} GPUs in use would be disrupted",
    "removed_nodes": "{counted} nodes removed",
    "removed_percent": "{counted} % of the nodes of {pool} removed",
}
# Options of `reconciler approve` for ceilings.
OPTIONS: dict[Measure, str] = {
    "removed_nodes": "--removed-nodes",
    "removed_percent": "--removed-percent",
    "disrupted_gpus": "--disrupted-gpus",
    "deleted_node_pools": "--deleted-node-pools",
}
_COLUMNS = (TableColumn(""), TableColumn("", right=True), TableColumn(""), TableColumn(""))


def blocked_lines(planned: Planned) -> Iterator[TextLine]:
    """One line per guard that holds something, and one per other blocking reason."""
    for each in planned.plan.guarded:
        if each.blocks:
            yield line(blocked_words(planned, each), "bad" if is_blocking(planned.decision_texts, each) else "warn")
    yield from reason_lines(beside_guards(planned.decision_texts))


def guard_blocks(planned: Planned) -> tuple[Block, ...]:
    """One section per guard with counts."""
    shown = [
        each
        for each in planned.plan.guarded
        if each.held or each.exceeded or any(one.counted or one.expected for one in each.counts if one.period == "plan")
    ]
    return (*map(_section, shown), *(way for each in shown for way in ways_on(planned, each)))


def ways_on(planned: Planned, guarded: GuardVerdict) -> Iterator[TextLine]:
    """Remedies for a held plan."""
    if not guarded.blocks:
        return
    ways = list(other_ways(planned.setting, guarded))
    approve = approve_words(planned.setting, guarded)
    if approve:
        yield line(f"Remedies: {'; '.join([*ways, 'or'])}" if ways else "Remedy:")
        yield line(f"  {approve}")
    elif ways:
        yield line(f"Remedies: {'; '.join(ways)}")


def other_ways(setting: ReportHeader, guarded: GuardVerdict) -> Iterator[str]:
    """Remedies other than an approval."""
    yield from (
        f"make one change at a time: the guard allows {title} if it is the only change" for title in guarded.alone
    )
    if guarded.until is not None:
        yield f"the limit has room again at {clock(guarded.until, setting.now)}"
    if guarded.by_the_hour:
        limits = ", ".join(guarded.by_the_hour)
        yield f"with perHour: {{{limits}}} instead of perPlan, the change proceeds in steps, as each hour allows"


def with_ways_on(
    setting: ReportHeader, guards: Sequence[GuardVerdict], decision_texts: Iterable[DecisionText]
) -> tuple[DecisionText, ...]:
    """The decisions, with remedies for those held by a guard."""
    ways = {}
    for each in guards:
        approve = approve_words(setting, each)
        words = [*other_ways(setting, each), *([f"approve the change: {approve}"] if approve else [])]
        ways[each.guard] = "; or ".join(words)
    return tuple(
        msgspec.structs.replace(each, remedy=ways.get(guard, each.remedy)) if (guard := guard_of(each)) else each
        for each in decision_texts
    )


def approve_words(setting: ReportHeader, guarded: GuardVerdict) -> str:
    """The command that approves the change: by its policies, otherwise by the revision; empty if neither is known."""
    needed: dict[str, int | None] = msgspec.structs.asdict(guarded.needed)
    ceilings = [f"{option} {needed[measure]}" for measure, option in OPTIONS.items() if needed[measure] is not None]
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


def blocked_words(planned: Planned, guarded: GuardVerdict) -> str:
    """One line: the guard, when the limit has room again, and the exceeded limits."""
    until = "" if guarded.until is None else f" until {clock(guarded.until, planned.setting.now)}"
    text = f"by guard {guarded.guard}{until}: {'; '.join(_exceeded(guarded))}"
    return ("BLOCKED " if is_blocking(planned.decision_texts, guarded) else "Held also without this change, ") + text


def _exceeded(guarded: GuardVerdict) -> Iterator[str]:
    """Limits per plan if any is exceeded; percent only if the node count is not exceeded."""
    of_plan = [each for each in guarded.exceeded if each.period == "plan"]
    guard_counts = {each.measure: each for each in of_plan or guarded.exceeded}
    if "removed_nodes" in guard_counts:
        guard_counts.pop("removed_percent", None)
    for measure, words in _DONE.items():
        if each := guard_counts.get(measure):
            done = words.format(counted=each.counted, pool=each.pool)
            yield f"{done}{'' if each.period == 'plan' else ' in the last hour'}, {each.allowed} allowed"


def _section(guarded: GuardVerdict) -> Section:
    place = place_of(guarded.origin)
    would = " (suppressed: pools in Observe mode)" if guarded.would else ""
    heading = f"Guard {guarded.guard}{would}" + (f", {place}" if place else "")
    rows = tuple(_row(each, guarded) for each in guarded.counts)
    names = ", ".join(f"ChangeApproval/{each}" for each in guarded.approvals)
    approved = (line(f"Approved by {names}."),) if names else ()
    return Section(heading, (Table(_COLUMNS, (RowGroup(rows),)), *_too_large(guarded), *approved))


def _too_large(guarded: GuardVerdict) -> Iterator[TextLine]:
    """Nodes whose drain needs an approval once their timers end, since no plan may drain them within the limits."""
    if number := guarded.too_large:
        exceed = "exceeds a limit alone" if number == 1 else "each exceed a limit alone"
        them = "it" if number == 1 else "them"
        yield line(f"{counted(number, 'node')} to be drained {exceed}: the guard will hold {them}.", "warn")


# Words for parts of a count that `plan -o json` names otherwise.
_PARTS = {
    "once their blockers are gone": "evicted later (blocked now)",
    "with their NodePool": "deleted with their NodePool",
}


def _row(count: GuardCount, guarded: GuardVerdict) -> Row:
    verdict = ""
    if count.exceeded:
        verdict = "approved" if guarded.approvals and not guarded.blocks else "EXCEEDED"
    name = MEASURES[count.measure] + (" in the last hour" if count.period == "hour" else "")
    parts = ", ".join(f"{number} {_PARTS.get(part, part)}" for part, number in count.parts)
    text = f"of {count.pool}" if count.pool and (count.counted or count.expected) else parts
    return Row((name, f"{count.counted} of {count.allowed}", verdict, ", ".join(filter(None, (text, _later(count))))))


def _later(count: GuardCount) -> str:
    """Such as 40 more to be drained later, in several plans."""
    if not count.expected:
        return ""
    exceeds = count.counted + count.expected > count.allowed
    period = "several plans" if count.period == "plan" else "several hours"
    unit = " %" if count.measure == "removed_percent" else ""
    return f"{count.expected}{unit} more to be drained later" + (f", in {period}" if exceeds else "")
