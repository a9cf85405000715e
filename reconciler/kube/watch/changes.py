"""What watchers tell the store."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from reconciler.kube.decode import WatchEvent
from reconciler.model.cluster.kinds import ResourceKind
from reconciler.model.instant import Instant

Clock = Callable[[], Instant]


def wall_clock() -> Instant:
    """Now."""
    return Instant(time.time_ns() // 1_000_000)


class Listed(msgspec.Struct, frozen=True):
    """All objects of a kind."""

    resource_kind: ResourceKind
    items: tuple[Any, ...]
    version: str
    at: Instant  # before it was asked for: what is in it is at least as new


class ObjectEvent(msgspec.Struct, frozen=True):
    """An event of a watch that is no error."""

    resource_kind: ResourceKind
    event: WatchEvent
    at: Instant


class WatchOpened(msgspec.Struct, frozen=True):
    """The API server lets the kind be watched."""

    resource_kind: ResourceKind


class Absent(msgspec.Struct, frozen=True):
    """The cluster does not serve the kind."""

    resource_kind: ResourceKind
    at: Instant
    again: bool = False  # it was so before


class ReadFailure(msgspec.Struct, frozen=True):
    """The kind can't be read now. What was seen of it holds for a while, unless the API server refuses to tell more."""

    resource_kind: ResourceKind
    why: str
    is_refusal: bool = False


class Identity(msgspec.Struct, frozen=True):
    """Which cluster it is, or why that can't be read."""

    uid: str = ""
    why: str = ""


Change = Listed | ObjectEvent | WatchOpened | Absent | ReadFailure | Identity


def is_news(change: Change) -> bool:
    """Whether it may change what is known, not only how lately it was confirmed."""
    match change:
        case ObjectEvent(event=event):
            return event.type != "BOOKMARK"
        case Absent(again=again):
            return not again
        case ReadFailure(is_refusal=is_refusal):
            return is_refusal
    return True
