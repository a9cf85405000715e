"""The figures that several codes of drains tell, and how facts of drains are written."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.cluster.observed import Quiet, Unread
from reconciler.model.instant import Instant, timestamp
from reconciler.plan.capacity.demand import ClaimDoubt
from reconciler.plan.capacity.words import listed, ruled_out_words
from reconciler.plan.reasons import counted

# --- What several codes of drains tell: the size that a pool keeps, where pods would go, which nodes have no room.

_MOST_NAMED = 3

# Which rule of a NodeProvisioner decides how many nodes a pool keeps (see limits.py).
FloorRule = Literal[
    "minSize", "maxSize", "warmNodes", "minUnutilizedGPUNodes", "minGPUUtilizationPercent", "gpuUtilization"
]
# Why nodes take no pods of others, whatever room they have.
AsideCause = Literal["leaving", "notReady", "driverUpgrade", "empty", "candidate", "other"]


class Floor(msgspec.Struct, frozen=True, gc=False):
    """How many nodes a pool keeps, and what that follows from."""

    nodes: int
    by: FloorRule
    gpus_used: int = 0
    gpus_total: int = 0
    gpus_per_node: int = 0
    percent: int = 0  # minGPUUtilizationPercent
    spare: int = 0  # nodes that are kept free
    closed: int = 0  # empty ones that others have cordoned: they are no spare nodes

    @property
    def packed(self) -> int:
        """How many nodes the GPUs in use need."""
        return -(-self.gpus_used // self.gpus_per_node) if self.gpus_per_node else 0

    def with_spare(self, spare: int) -> int:
        """How many nodes the pool has where so many of them are free for pods."""
        return self.packed + (spare + self.closed if spare else 0)


class Destinations(msgspec.Struct, frozen=True, gc=False):
    """Nodes that pods would go to: the first by name, and how many more."""

    first: tuple[str, ...] = ()
    more: int = 0


def destinations_of(nodes: tuple[str, ...]) -> Destinations:
    """`nodes`: by name."""
    return Destinations(nodes[:_MOST_NAMED], max(0, len(nodes) - _MOST_NAMED))


class Aside(msgspec.Struct, frozen=True, gc=False):
    """Nodes that were not asked to take a pod."""

    why: AsideCause
    nodes: int


class NodesWithoutRoom(msgspec.Struct, frozen=True, gc=False):
    """Why no node takes a pod."""

    ruled_out: Rejections = Rejections()
    aside: tuple[Aside, ...] = ()


class TaintTime(msgspec.Struct, frozen=True, gc=False):
    """The time that a taint tells."""

    value: str
    at: Instant | None = None  # None: it can't be read


class FreezeEnd(msgspec.Struct, frozen=True, gc=False):
    """Until when a freeze lasts."""

    written: str
    at: Instant | None = None  # None: it can't be read
    reason: str = ""


def _floor(floor: Floor) -> str:
    used = floor.gpus_used
    match floor.by:
        case "minSize" | "maxSize":
            return f"{floor.by} is {floor.nodes}"
        case "warmNodes" | "minUnutilizedGPUNodes":
            closed = f", beside {floor.closed} that others have cordoned" if floor.closed else ""
            return f"{used} GPUs in use need {floor.packed}, and {floor.by} is {floor.spare}{closed}"
        case "gpuUtilization":
            return f"{used} of {floor.gpus_total} GPUs are in use, and {floor.percent} % are wanted"
        case "minGPUUtilizationPercent":
            return f"{used} GPUs in use are {floor.percent} % of so many"


def _destinations(destinations: Destinations) -> str:
    more = f" and {destinations.more} more" if destinations.more else ""
    return ", ".join(destinations.first) + more or "other nodes"


_ASIDE: dict[AsideCause, str] = {
    "leaving": "leaving",
    "notReady": "not ready",
    "driverUpgrade": "whose driver is to be upgraded",
    "empty": "empty",
}


def _aside(aside: Aside) -> str:
    words = _ASIDE.get(aside.why)
    return counted(aside.nodes, aside.why) if words is None else f"{aside.nodes} {words}"


def _no_room(room: NodesWithoutRoom) -> str:
    aside = listed([_aside(each) for each in room.aside])
    takes_none = "takes none" if sum(each.nodes for each in room.aside) == 1 else "take none"
    parts = ruled_out_words(room.ruled_out), f"{aside} {takes_none}" if aside else ""
    return "; ".join(filter(None, parts)) or "none stays"


def _taint_time(time: TaintTime) -> str:
    return time.value if time.at is None else timestamp(time.at)


def _freeze_end(end: FreezeEnd) -> str:
    reason = f" ({end.reason})" if end.reason else ""
    return f"until {end.written if end.at is None else timestamp(end.at)}{reason}"


def _claim_doubt(doubt: ClaimDoubt) -> str:
    match doubt.kind:
        case "absent":
            return "it is not there"
        case "suspended":
            return "it is suspended"
        case "unreadable":
            return "what it asks for can't be read"
        case "oneIsland":
            return "it wants GPUs of one island, and which of them are free elsewhere is not known"
        case "otherCount":
            return f"it is for {doubt.claimed} GPUs, and the pod asks its node for {doubt.asked}"


def _unread(unread: Unread) -> str:
    return f"{unread.kind}: {unread.why}"


def _quiet(quiet: Quiet) -> str:
    return f"nothing has been heard of {quiet.kind} since {timestamp(quiet.since)}"


WORDS: Mapping[type, Callable[[Any], str]] = {
    Floor: _floor,
    Destinations: _destinations,
    NodesWithoutRoom: _no_room,
    TaintTime: _taint_time,
    FreezeEnd: _freeze_end,
    ClaimDoubt: _claim_doubt,
    Unread: _unread,
    Quiet: _quiet,
}
