"""Sections of pools: node changes that happen in any case, and those caused by this change."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, clock, span
from reconciler.model.plan.capacity import Stage
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.capacity.words import obstacles_words
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.observing import inaction_of
from reconciler.plan.impact.blame import Blame, pool_of
from reconciler.plan.impact.departures import Departing
from reconciler.plan.impact.pricing import Bills
from reconciler.plan.impact.purchases import bought_when, bought_words
from reconciler.plan.sums import use_of
from reconciler.report.decision_text import marked
from reconciler.report.document import (
    Block,
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
from reconciler.report.plans.planned import Planned, PoolLine
from reconciler.report.wording import counted, difference

# --- Current state of each pool, and its cost: now, after all that happens without this change, and after all that
# happens with it.
#
# A pool that no policy declares any more still has a cost: by the policy of the base, or unknown.


def pool_lines(scene: PlanningResult, base: PlanningResult | None, bills: Mapping[str, Bills]) -> Iterator[PoolLine]:
    """The declared pools; then pools that are no longer declared and still have nodes."""
    before = {pool.name: pool for pool in base.inputs.desired.pools} if base else {}
    after = {pool.name: pool for pool in scene.inputs.desired.pools}
    touched = {pool_of(each) for one in (scene, base) if one for each in one.plan.consequences}
    left = [name for name in sorted((before.keys() | touched) - after.keys()) if scene.fleet.nodes_of(name)]
    for name in (*after, *left):
        pool = after.get(name)
        declared = pool or before.get(name)
        use = use_of(scene.fleet, name, declared.spec.devices.count if declared else 1)
        yield PoolLine(
            pool=name,
            nodes=use.nodes,
            busy_nodes=use.busy_nodes,
            gpus=use.gpus_total,
            gpus_in_use=use.gpus_used,
            cost=bills[name],
            budgets_read=not scene.inputs.observed.why_unread("poddisruptionbudgets.policy"),
            remarks=(*_limits(scene, pool), *_unclaimed(scene, name)),
            declared=pool is not None,
            observation=inaction_of(scene.inputs, scene.fleet, name),
        )


def _limits(scene: PlanningResult, pool: Declared[GpuPool] | None) -> Iterator[str]:
    """Whether limits allow a replacement to be launched before the old node is deleted."""
    if pool is None or not pool.spec.limits:
        return
    own = [each for each in scene.plan.consequences if each.pool == pool.name]
    text = ", ".join(f"{most} {name}" for name, most in sorted(pool.spec.limits.items()))
    if any(hindrance.kind == "limits" for each in own for hindrance, _ in each.held_by):
        yield f"The limits of the NodePool ({text}) are reached or exceeded, so no replacement is launched."
    elif any(each.fate == "replaced" for each in own):
        yield f"The limits of the NodePool ({text}) allow the replacements."


def _unclaimed(scene: PlanningResult, pool: str) -> Iterator[str]:
    nodes = scene.fleet.nodes_of(pool)
    if scene.inputs.observed.why_unread("nodeclaims.karpenter.sh") or not nodes:
        return
    claimed = {claim.status.node_name for claim in scene.fleet.claims_of(pool)}
    if unclaimed := sum(node.name not in claimed for node in nodes):
        has, them = ("has", "it") if unclaimed == 1 else ("have", "them")
        yield f"{unclaimed} of its {len(nodes)} nodes {has} no NodeClaim: Karpenter does not manage {them}."


# --- Times at which nodes are scaled down or drained, and since when they are marked.


def _times(consequence: Consequence, planned: Planned) -> Iterator[str]:
    """Such as 14:52Z, marked since 14:22Z; or from 14:52Z, 4 at a time. Empty for nodes that Karpenter removes."""
    if consequence.fate == "scaled":
        # Nodes that depart in the plan, or in its base without the change.
        by_name = {each.node: each for each in planned.departing}
        yield from _scaled([by_name[name] for name in consequence.nodes if name in by_name], planned.setting.now)
    elif consequence.fate == "drained":
        yield from _drained(consequence, planned.setting.now)


def _scaled(departing_nodes: Sequence[Departing], now: Instant) -> Iterator[str]:
    times = sorted({each.at for each in departing_nodes if each.at is not None})
    if times:
        yield f"{_span(times, now)}{_marked(departing_nodes, now)}"
    if any(each.at is None for each in departing_nodes):
        yield "once a guard allows it" if not times else "others once a guard allows it"


def _drained(consequence: Consequence, now: Instant) -> Iterator[str]:
    times = sorted({each.at for each in consequence.shares if each.at is not None})
    begun, later = [each for each in times if each <= now], [each for each in times if each > now]
    if begun:
        yield "now" if begun == [now] else f"since {_span(begun, now)}"
    if later:
        yield f"{'others ' if begun else ''}from {clock(later[0], now)}"
    if any(each.at is None for each in consequence.shares):
        yield f"{'others ' if times else ''}once a guard or window allows it, or pods have completed"


def _marked(departing_nodes: Sequence[Departing], now: Instant) -> str:
    since = sorted({each.since for each in departing_nodes if each.since is not None})
    if since:
        return f", marked since {_span(since, now)}"
    return ", marked before" if all(each.is_marked for each in departing_nodes) else ", marked now"


def _span(times: Sequence[Instant], now: Instant) -> str:
    first, last = clock(times[0], now), clock(times[-1], now)
    return first if first == last else f"{first} to {last}"


_NUMBERS = ("nodes", "GPUs", "$/h")
_COLUMNS = (TableColumn(""), *(TableColumn(each, right=True) for each in _NUMBERS), TableColumn("when"))


class _RowStyle(msgspec.Struct, frozen=True):
    mark: str
    tone: Tone
    text: str
    pace: str = ""  # condition between the nodes of a wave


_FATES: dict[Fate, _RowStyle] = {
    "scaled": _RowStyle("-", "bad", "empty, scaled down"),
    "drained": _RowStyle("-", "bad", "not needed, drained"),
    "removed": _RowStyle("-", "bad", "empty, drifted, not replaced", "Karpenter"),
    "replaced": _RowStyle("-/+", "bad", "busy, drifted, pods evicted", "Karpenter"),
    "blocked": _RowStyle("~", "warn", "busy, drifted, cannot be disrupted"),
    "deleted": _RowStyle("-", "bad", "NodePool deleted, nodes with it", "immediately, ignoring all budgets"),
    "undrifted": _RowStyle("+", "good", "drifted now, not after the change"),
    "exchanged": _RowStyle("~", "warn", "replaced anyway"),
    "bought": _RowStyle("+", "good", "bought"),
    "scheduled": _RowStyle("+", "dim", "bought by a schedule"),
    "limited": _RowStyle("!", "warn", "needed, not bought because of a limit"),
}
_ORDER: tuple[Fate, ...] = tuple(_FATES)
_COMES: frozenset[Fate] = frozenset({"bought", "scheduled", "limited"})
_FOLLOWS: frozenset[Fate] = frozenset({"replaced", "exchanged"})
_STAGES: tuple[Stage, ...] = get_args(Stage)


def pool_sections(planned: Planned, blamed: Blame) -> Iterator[Section]:
    """One section per pool with changes; pools that no policy declares come last."""
    happening = {pool_of(each) for each in (*blamed.without, *blamed.causes, *blamed.spared)}
    known = {pool.pool: pool for pool in planned.pools}
    for name in [*known, *sorted(happening - set(known))]:
        if name in happening:
            yield _section(name, planned, blamed)


def _section(name: str, planned: Planned, blamed: Blame) -> Section:
    pool = planned.pool(name)
    without, consequences = _own(name, blamed.without), _own(name, blamed.causes)
    parts = (
        *_by_doing("also without this change" if planned.base else "independent of this plan", without, pool),
        *_by_doing("because of this change" if planned.base else "because of this plan", consequences, pool),
        ("no longer happens with this change", _own(name, blamed.spared)),
    )
    groups = tuple(RowGroup(tuple(_row(each, planned) for each in own), heading) for heading, own in parts if own)
    is_declared = pool is not None and pool.declared
    state = f"{counted(pool.nodes, 'node')}, {pool.busy_nodes} busy" if pool and is_declared else "no longer declared"
    return Section(f"{name}: {state}", (Table(_COLUMNS, groups), *_below(pool, (*without, *consequences))))


def _by_doing(
    heading: str, own: tuple[Consequence, ...], pool: PoolLine | None
) -> tuple[tuple[str, tuple[Consequence, ...]], ...]:
    """Changes that happen even in Observe mode; then, for a pool in Observe mode, suppressed changes."""
    observation = pool.observation if pool is not None else None
    if observation is None:
        return ((heading, own),)
    happening = tuple(each for each in own if each.cause == "standing")
    supposed = tuple(each for each in own if each.cause == "change")
    return (heading, happening), (marked(heading, observation), supposed)


def _own(name: str, consequences: tuple[Consequence, ...]) -> tuple[Consequence, ...]:
    """Purchases in order of time, others in order of nodes."""
    own = [each for each in consequences if pool_of(each) == name]
    return tuple(sorted(own, key=lambda each: (_ORDER.index(each.fate), each.node_pool, _first_of(each))))


def _first_of(consequence: Consequence) -> tuple[int, tuple[str, ...]]:
    stage = consequence.order.stage if consequence.order is not None else None
    return (_STAGES.index(stage), ()) if stage is not None else (0, consequence.nodes)


def _row(consequence: Consequence, planned: Planned) -> Row:
    words, order = _FATES[consequence.fate], consequence.order
    numbers = (str(len(consequence.nodes)), str(consequence.gpus), _money(consequence))
    if consequence.fate in _COMES:
        bought = "; ".join(bought_when(consequence, planned.setting.now))
        return Row((bought_words(consequence), *numbers, bought), words.mark, words.tone)
    by = (f"by {order.words}",) if order is not None else ()
    when = (*_times(consequence, planned), *by, *_when(consequence, words.pace))
    return Row((words.text, *numbers, "; ".join(when)), words.mark, words.tone)


def _money(consequence: Consequence) -> str:
    """What is not known is no 0."""
    money, unpriced = consequence.micro_dollars_per_hour, consequence.unpriced
    if not unpriced:
        return difference(money)
    return f"{difference(money)}, {unpriced} unpriced" if money or unpriced < len(consequence.nodes) else "unpriced"


def _when(consequence: Consequence, pace: str) -> Iterator[str]:
    if consequence.fate in {"undrifted", "scaled"}:
        return
    wave = f"{consequence.wave} at a time" if consequence.wave else ""
    if text := ", ".join(filter(None, (pace, wave))):
        yield text
    if consequence.pods:
        yield counted(consequence.pods, "pod")
    others = ((each.title, count) for each, count in consequence.held_by if each.kind != "pod_budget")
    yield from (f"{counted(count, 'node')} because of {title}" for title, count in others)
    if consequence.fate == "blocked" and consequence.seconds is None:
        yield "no known end"
    elif consequence.seconds:
        yield f"about {span(consequence.seconds)}"


def _below(pool: PoolLine | None, coming: tuple[Consequence, ...]) -> Iterator[Block]:
    """Why nodes cannot be disrupted, caveats of the numbers, and remarks."""
    notes = [*_budgets(coming), *_deletions(coming), *_homeless(coming), *_unpriced(coming)]
    if notes:
        yield ReportNotes(tuple(notes))
    busy = any(each.fate in {"drained", "replaced", "blocked"} for each in coming)
    if busy and not any(hindrance.kind == "pod_budget" for each in coming for hindrance, _ in each.held_by):
        read = pool is None or pool.budgets_read
        yield line(f"PodDisruptionBudgets: {'none blocks an eviction' if read else 'not read, and may block more'}.")
    for remark in pool.remarks if pool else ():
        yield line(remark)


def _unpriced(coming: tuple[Consequence, ...]) -> Iterator[ReportNote]:
    """Notes about nodes that are in no sum."""
    if unpriced := sum(each.unpriced for each in coming if each.fate not in _FOLLOWS | _COMES):
        yield ReportNote("note", f"{counted(unpriced, 'node')} without a declared price: excluded from $/h.")
    if unpriced := sum(each.unpriced for each in coming if each.fate in _FOLLOWS):
        nodes = counted(unpriced, "node")
        text = f"{nodes} will be of another machine type, whose price is unknown: excluded from $/h."
        yield ReportNote("note", text)
    sorts: Counter[str] = Counter()
    for each in coming:
        if each.fate in _COMES and each.order is not None and each.unpriced:
            sorts[each.order.words] += each.unpriced
    for sort, unpriced in sorted(sorts.items()):
        text = f"{counted(unpriced, 'node')} to be bought without a declared price, {sort}: excluded from $/h."
        yield ReportNote("note", text)


def _budgets(coming: tuple[Consequence, ...]) -> Iterator[ReportNote]:
    held: Counter[str] = Counter()
    for hindrance, count in (one for each in coming for one in each.held_by):
        if hindrance.kind == "pod_budget":
            held[hindrance.title] += count
    for name, count in sorted(held.items()):
        yield ReportNote("warning", f"{name} blocks {counted(count, 'node')}: the budget allows no eviction there now.")


def _deletions(coming: tuple[Consequence, ...]) -> Iterator[ReportNote]:
    for each in coming:
        if each.fate == "deleted" and each.nodes:
            what = f"{counted(len(each.nodes), 'node')} and {counted(each.pods, 'pod')}"
            text = f"Deleting NodePool/{each.node_pool} also deletes {what}, with {each.gpus_in_use} GPUs in use."
            yield ReportNote("error", text)


def _homeless(coming: tuple[Consequence, ...]) -> Iterator[ReportNote]:
    for each in coming:
        stay = "Karpenter does not disrupt their nodes" if each.fate == "blocked" else "they stay Pending"
        for homeless in each.homeless:
            who = f"{counted(homeless.pods, 'pod')} of {homeless.owner}"
            yield ReportNote(
                "error", f"{who} would fit on no other node: {obstacles_words(homeless.why)}. Therefore {stay}."
            )
