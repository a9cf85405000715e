"""How things stand, as a document: the policies in force, the cluster, and each pool."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import timestamp
from reconciler.model.planned.guarded import Guarded
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.told import WORDS
from reconciler.report.blocks import Blank, Block, Column, Group, Note, Notes, Row, Table, line
from reconciler.report.document import Document, Judged
from reconciler.report.plans.guard_json import freezes_told, guards_told
from reconciler.report.setting import Setting, seen_at, unread_notes
from reconciler.report.wording import counted

FORMAT_VERSION = 1

_COLUMNS = (
    Column("pool"),
    Column("mode"),
    Column("nodes", True),
    Column("busy", True),
    Column("GPUs", True),
    Column("in use", True),
    Column("drifted", True),
)


class PoolStanding(msgspec.Struct, frozen=True):
    """A pool as it stands; None is what could not be read."""

    pool: str
    mode: str
    nodes: int | None
    busy_nodes: int | None
    gpus: int | None
    gpus_in_use: int | None
    drifted_nodes: int | None
    short: str = ""  # what could not be bought lately, in words


class Overview(msgspec.Struct, frozen=True):
    """And how many decisions wait: for their pool to be enforced, for something in their way, or to be carried out."""

    setting: Setting
    pools: tuple[PoolStanding, ...] = ()
    unread: tuple[Unread, ...] = ()
    notices: tuple[str, ...] = ()
    pending: int = 0
    would: int = 0
    held: int = 0
    freezes: tuple[Freeze, ...] = ()
    guarded: tuple[Guarded, ...] = ()


def overview_document(overview: Overview) -> Document:
    """At one look."""
    return Document(
        command="status",
        title=f"Status of {overview.setting.policies}",
        tool_version=overview.setting.tool_version,
        blocks=tuple(_blocks(overview)),
        payload=_payload(overview),
        otherwise=overview.setting.headline,
        judged=Judged(len(overview.pools), "pool", "problem"),
    )


def _blocks(overview: Overview) -> Iterator[Block]:
    yield from (line(f"FROZEN: {each.what}, {each.told}", "bad") for each in overview.freezes)
    notes = (*unread_notes(overview.unread), *(Note("note", each) for each in overview.notices))
    if notes:
        yield Notes(notes)
    yield line(overview.setting.headline, "strong")
    yield Blank()
    if overview.pools:
        yield Table(_COLUMNS, (Group(tuple(map(_row, overview.pools))),))
    else:
        yield line("No policy declares a pool.")
    yield Blank()
    yield from (line(f"Pool {each.pool} is short: {each.short}.", "bad") for each in overview.pools if each.short)
    yield from (line(told) for told in map(_guard, overview.guarded) if told)
    yield line(_waiting(overview))


def _row(pool: PoolStanding) -> Row:
    numbers = (pool.nodes, pool.busy_nodes, pool.gpus, pool.gpus_in_use, pool.drifted_nodes)
    return Row((pool.pool, pool.mode, *("?" if each is None else str(each) for each in numbers)))


def _guard(guarded: Guarded) -> str:
    """Guard fleet, in the hour so far: 6 of 40 removed nodes; what pools that only observe would take is none of it."""
    hour = [each for each in guarded.counts if each.period == "hour"]
    told = ", ".join(f"{each.before} of {each.allowed} {WORDS[each.measure]}" for each in hour)
    held = f"; it holds {counted(guarded.held, 'decision')}" if guarded.held else ""
    return f"Guard {guarded.guard}, in the hour so far: {told or 'no limit'}{held}." if hour or held else ""


def _waiting(overview: Overview) -> str:
    told = [f"{overview.pending} to carry out"] if overview.pending else []
    if overview.would:
        told.append(f"{overview.would} would be if their pools did not only observe")
    if overview.held:
        told.append(f"{overview.held} held")
    if not told:
        return "Nothing is to be done." if not overview.unread else "Nothing is to be done about what could be read."
    return f"{', '.join(told)}: reconciler plan tells which."


def _payload(overview: Overview) -> dict[str, Any]:
    setting = overview.setting
    return {
        "format_version": FORMAT_VERSION,
        "tool": {"name": "reconciler", "version": setting.tool_version},
        "environment": setting.environment,
        "revision": setting.revision,
        "now": timestamp(setting.now),
        "cluster": {"name": setting.cluster, "uid": setting.cluster_uid, "seen_at": seen_at(setting)},
        "pools": [msgspec.to_builtins(pool) for pool in overview.pools],
        "guards": msgspec.to_builtins([each for each in guards_told(overview.guarded) if not each.would]),
        "freezes": msgspec.to_builtins(freezes_told(overview.freezes)),
        "unread": [{"kind": each.kind, "why": each.why} for each in sorted(overview.unread)],
        "notices": list(overview.notices),
        "pending": overview.pending,
        "would": overview.would,
        "held": overview.held,
    }
