"""How things stand, as a document: the policies in force, the cluster, and each pool."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.model.cluster.observed import Unread
from reconciler.model.human_time import moment
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.observing import Observation
from reconciler.plan.guards.words import MEASURES
from reconciler.report.blocks import (
    Blank,
    Block,
    Detail,
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
from reconciler.report.decision_text import DecisionText, mark_of, would
from reconciler.report.document import CheckedCount, ReportDocument
from reconciler.report.plans.guard_json import freezes_json, guards_json
from reconciler.report.setting import ReportHeader, snapshot_time, unread_notes
from reconciler.report.status.controller import ControllerStatus, controller_words
from reconciler.report.status.leaving import LeavingNodes
from reconciler.report.suppressed import conditions
from reconciler.report.wording import counted

FORMAT_VERSION = 1

_COLUMNS = (
    TableColumn("pool"),
    TableColumn("mode"),
    TableColumn("nodes", True),
    TableColumn("busy", True),
    TableColumn("GPUs", True),
    TableColumn("in use", True),
    TableColumn("drifted", True),
)


class PoolOverview(msgspec.Struct, frozen=True):
    """A pool as it stands; None is what could not be read."""

    pool: str
    mode: str
    nodes: int | None
    busy_nodes: int | None
    gpus: int | None
    gpus_in_use: int | None
    drifted_nodes: int | None
    short: str = ""  # what could not be bought lately, in words
    observed_because: str = ""  # where the pool is only observed, whatever its mode


class Overview(msgspec.Struct, frozen=True):
    """And how many decisions wait: for their pool to be enforced, for something in their way, or to be carried out."""

    setting: ReportHeader
    pools: tuple[PoolOverview, ...] = ()
    unread: tuple[Unread, ...] = ()
    notices: tuple[str, ...] = ()
    pending: int = 0
    supposed: Mapping[Observation, int] = {}  # decisions about pools that are only observed
    held: int = 0  # by a person or a guard
    waiting: int = 0  # until it goes on by itself
    freezes: tuple[Freeze, ...] = ()
    guarded: tuple[GuardVerdict, ...] = ()
    controller: ControllerStatus | None = None  # None: nobody looked
    leaving: tuple[LeavingNodes, ...] = ()
    holds: tuple[DecisionText, ...] = ()


def overview_document(overview: Overview) -> ReportDocument:
    """At one look."""
    return ReportDocument(
        command="status",
        title=f"Status of {overview.setting.policies}",
        tool_version=overview.setting.tool_version,
        blocks=tuple(_blocks(overview)),
        payload=_payload(overview),
        otherwise=overview.setting.headline,
        judged=CheckedCount(len(overview.pools), "pool", "problem"),
    )


def _blocks(overview: Overview) -> Iterator[Block]:
    yield from (line(f"FROZEN: {each.scope_text}, {each.until_text}", "bad") for each in overview.freezes)
    notes = (*unread_notes(overview.unread), *(ReportNote("note", each) for each in overview.notices))
    if notes:
        yield ReportNotes(notes)
    yield line(overview.setting.headline, "strong")
    yield Blank()
    if overview.pools:
        yield Table(_COLUMNS, (RowGroup(tuple(map(_row, overview.pools))),))
    else:
        yield line("No policy declares a pool.")
    yield Blank()
    if overview.leaving:
        items = (Item("-", each.words(overview.setting.now)) for each in overview.leaving)
        yield Section("On their way", (ItemList(tuple(items)),))
        yield Blank()
    if overview.holds:
        for title, by_someone in (("Held", True), ("Waiting", False)):
            holds = [each for each in overview.holds if each.held_by_someone == by_someone]
            if holds:
                yield Section(title, (ItemList(tuple(_holds(holds, overview.setting.now))),))
                yield Blank()
    yield from (
        line(f"Pool {each.pool} is only observed: {each.observed_because}.", "warn")
        for each in overview.pools
        if each.observed_because and each.mode == "Enforce"
    )
    yield from (line(f"Pool {each.pool} is short: {each.short}.", "bad") for each in overview.pools if each.short)
    yield from (line(text) for text in map(_guard, overview.guarded) if text)
    if overview.controller is not None:
        yield line(controller_words(overview.controller, overview.setting.now))
    yield line(_waiting(overview))


def _holds(holds: Sequence[DecisionText], now: Instant) -> Iterator[Item]:
    """One for each reason: the first of those that share it, and how many they are."""
    alike: dict[tuple[str, bool], list[DecisionText]] = {}
    for each in holds:
        alike.setdefault((each.decision.reason.code, each.is_supposed), []).append(each)
    for group in alike.values():
        first = group[0]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        until = min((each.until for each in group if each.until is not None), default=None)
        details = [Detail(first.sentence)]
        if until is not None:
            details.append(Detail(f"looked at again {moment(until, now)}"))
        title = would(f"{first.decision.subject.title}{more}", first.is_supposed)
        mark, tone = mark_of(first)
        yield Item(mark, title, first.place, tuple(details), tone)


def _row(pool: PoolOverview) -> Row:
    numbers = (pool.nodes, pool.busy_nodes, pool.gpus, pool.gpus_in_use, pool.drifted_nodes)
    return Row((pool.pool, pool.mode, *("?" if each is None else str(each) for each in numbers)))


def _guard(guarded: GuardVerdict) -> str:
    """Guard fleet, in the hour so far: 6 of 40 removed nodes; what pools that only observe would take is none of it."""
    hour = [each for each in guarded.counts if each.period == "hour"]
    text = ", ".join(f"{each.before} of {each.allowed} {MEASURES[each.measure]}" for each in hour)
    held = f"; it holds {counted(guarded.held, 'decision')}" if guarded.held else ""
    return f"Guard {guarded.guard}, in the hour so far: {text or 'no limit'}{held}." if hour or held else ""


def _waiting(overview: Overview) -> str:
    lines = [f"{overview.pending} to carry out"] if overview.pending else []
    lines += [f"{number} would be if {clause}" for number, clause in conditions(overview.supposed)]
    if overview.held:
        lines.append(f"{overview.held} held")
    if overview.waiting:
        lines.append(f"{overview.waiting} waiting")
    if not lines:
        more = "more " if overview.leaving else ""
        about = " about what could be read" if overview.unread else ""
        return f"Nothing {more}is to be done{' now' if more else ''}{about}."
    return f"{', '.join(lines)}: reconciler plan tells which."


def _payload(overview: Overview) -> dict[str, Any]:
    setting = overview.setting
    return {
        "format_version": FORMAT_VERSION,
        "tool": {"name": "reconciler", "version": setting.tool_version},
        "environment": setting.environment,
        "revision": setting.revision,
        "now": timestamp(setting.now),
        "cluster": {"name": setting.cluster, "uid": setting.cluster_uid, "seen_at": snapshot_time(setting)},
        "pools": [msgspec.to_builtins(pool) for pool in overview.pools],
        "guards": msgspec.to_builtins([each for each in guards_json(overview.guarded) if not each.would]),
        "freezes": msgspec.to_builtins(freezes_json(overview.freezes)),
        "unread": [{"kind": each.kind, "why": each.why} for each in sorted(overview.unread)],
        "notices": list(overview.notices),
        "pending": overview.pending,
        "would": sum(overview.supposed.values()),
        "held": overview.held,
        "waiting": overview.waiting,
        "controller": _controller(overview.controller or ControllerStatus()),
        "leaving": [_leaving(each) for each in overview.leaving],
        "holds": [_hold(each) for each in overview.holds],
    }


def _controller(controller: ControllerStatus) -> dict[str, Any]:
    return {
        "leader": controller.leader,
        "runs": controller.runs,
        "leads_since": _time(controller.leads_since),
        "renewed_at": _time(controller.renewed_at),
        "seen_cluster_at": _time(controller.seen_cluster_at),
        "why_unknown": controller.why_unknown,
    }


def _leaving(leaving: LeavingNodes) -> dict[str, Any]:
    return {
        "pool": leaving.pool,
        "how": leaving.how,
        "nodes": list(leaving.nodes),
        "pods": leaving.pods,
        "first_at": _time(leaving.first_at),
        "last_at": _time(leaving.last_at),
        "would": leaving.observation is not None,
        "observed_because": leaving.observation.causes_text if leaving.observation is not None else "",
        "guard": leaving.guard,
    }


def _hold(decision_text: DecisionText) -> dict[str, Any]:
    return {
        "subject": decision_text.decision.subject.title,
        "held": decision_text.held_by_someone,
        "reason": decision_text.decision.reason.code,
        "sentence": decision_text.sentence,
        "hold": decision_text.hold,
        "until": _time(decision_text.until),
    }


def _time(at: Instant | None) -> str | None:
    return None if at is None else timestamp(at)
