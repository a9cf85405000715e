"""How things stand, as a document: the policies in force, the cluster, and each pool."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import timestamp
from reconciler.report.blocks import Blank, Block, Column, Group, Note, Notes, Row, Table, line
from reconciler.report.document import Document, Judged
from reconciler.report.setting import Setting, seen_at, unread_notes

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


class Overview(msgspec.Struct, frozen=True):
    """And how many decisions wait: for their pool to be enforced, for something in their way, or to be carried out."""

    setting: Setting
    pools: tuple[PoolStanding, ...] = ()
    unread: tuple[Unread, ...] = ()
    notices: tuple[str, ...] = ()
    pending: int = 0
    would: int = 0
    held: int = 0


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
    yield line(_waiting(overview))


def _row(pool: PoolStanding) -> Row:
    numbers = (pool.nodes, pool.busy_nodes, pool.gpus, pool.gpus_in_use, pool.drifted_nodes)
    return Row((pool.pool, pool.mode, *("?" if each is None else str(each) for each in numbers)))


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
        "unread": [{"kind": each.kind, "why": each.why} for each in sorted(overview.unread)],
        "notices": list(overview.notices),
        "pending": overview.pending,
        "would": overview.would,
        "held": overview.held,
    }
