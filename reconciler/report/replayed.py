"""Plans that were made again, as a document: whether the same came of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.report.blocks import Block, Detail, Item, Items, line
from reconciler.report.document import Document, Judged
from reconciler.report.wording import counted, short_digest

FORMAT_VERSION = 1
BROKEN = "no plan: it would break an invariant"


class Told(msgspec.Struct, frozen=True):
    """One of them; nothing is expected where nobody knows what came of it first."""

    at: Instant
    digest: str
    expected: str
    version: str
    decisions: int

    @property
    def differs(self) -> bool:
        return bool(self.expected) and self.digest != self.expected


def replayed_document(told: Sequence[Told], tool_version: str) -> Document:
    """Those that differ are listed; the others are counted."""
    return Document(
        command="replay",
        title="Replay",
        tool_version=tool_version,
        blocks=tuple(_blocks(told, tool_version)),
        payload=_payload(told),
        otherwise="There is nothing to replay.",
        judged=Judged(len(told), "plan", "difference"),
    )


def _blocks(told: Sequence[Told], tool_version: str) -> Iterator[Block]:
    differing = [each for each in told if each.differs]
    if differing:
        yield Items(tuple(_item(each, tool_version) for each in differing))
    expected = sum(bool(each.expected) for each in told)
    for each in told:
        if not each.expected:
            digest = each.digest or BROKEN
            yield line(f"plan of {timestamp(each.at)}: {digest}, {counted(each.decisions, 'decision')}")
    if expected:
        same = expected - len(differing)
        yield line(f"{same} of {counted(expected, 'plan')} came out the same", "warn" if differing else "good")


def _item(told: Told, tool_version: str) -> Item:
    digest = short_digest(told.digest) if told.digest else BROKEN
    details = [Detail(f"was {short_digest(told.expected)}, is {digest}")]
    if told.version not in {"", tool_version}:
        details.append(Detail(f"reconciler {told.version} made it first, this is {tool_version}"))
    return Item("!", f"plan of {timestamp(told.at)}", details=tuple(details), tone="bad")


def _payload(told: Sequence[Told]) -> dict[str, Any]:
    plans = [
        {
            "at": timestamp(each.at),
            "digest": each.digest or None,
            "expected": each.expected or None,
            "version": each.version or None,
            "decisions": each.decisions,
            "differs": each.differs,
        }
        for each in told
    ]
    return {"format_version": FORMAT_VERSION, "plans": plans}
