"""Report of repeated plans: whether each result is the same."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.report.document import Block, CheckedCount, Detail, Item, ItemList, ReportDocument, line
from reconciler.report.wording import counted, short_digest

FORMAT_VERSION = 1
BROKEN = "no plan: the plan would break an invariant"


class ReplayResult(msgspec.Struct, frozen=True):
    """One repeated plan; `expected` is empty if the original result is unknown."""

    at: Instant
    digest: str
    expected: str
    version: str
    decisions: int

    @property
    def differs(self) -> bool:
        return bool(self.expected) and self.digest != self.expected


def replayed_document(results: Sequence[ReplayResult], tool_version: str) -> ReportDocument:
    """The document: plans that differ are listed; the others are counted."""
    return ReportDocument(
        command="replay",
        title="Replay",
        tool_version=tool_version,
        blocks=tuple(_blocks(results, tool_version)),
        payload=_payload(results),
        otherwise="There is nothing to replay.",
        judged=CheckedCount(len(results), "plan", "difference"),
    )


def _blocks(results: Sequence[ReplayResult], tool_version: str) -> Iterator[Block]:
    differing = [each for each in results if each.differs]
    if differing:
        yield ItemList(tuple(_item(each, tool_version) for each in differing))
    expected = sum(bool(each.expected) for each in results)
    for each in results:
        if not each.expected:
            digest = each.digest or BROKEN
            yield line(f"plan of {timestamp(each.at)}: {digest}, {counted(each.decisions, 'decision')}")
    if expected:
        same = expected - len(differing)
        yield line(f"{same} of {counted(expected, 'plan')} gave the same result", "warn" if differing else "good")


def _item(result: ReplayResult, tool_version: str) -> Item:
    digest = short_digest(result.digest) if result.digest else BROKEN
    details = [Detail(f"was {short_digest(result.expected)}, is now {digest}")]
    if result.version not in {"", tool_version}:
        details.append(Detail(f"originally planned by reconciler {result.version}, now by {tool_version}"))
    return Item("!", f"plan of {timestamp(result.at)}", details=tuple(details), tone="bad")


def _payload(results: Sequence[ReplayResult]) -> dict[str, Any]:
    plans = [
        {
            "at": timestamp(each.at),
            "digest": each.digest or None,
            "expected": each.expected or None,
            "version": each.version or None,
            "decisions": each.decisions,
            "differs": each.differs,
        }
        for each in results
    ]
    return {"format_version": FORMAT_VERSION, "plans": plans}
