"""Figures that several reason codes of drains share, and their text."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.cluster.observed import Quiet, Unread
from reconciler.model.instant import Instant, timestamp
from reconciler.model.policy.scaling import SizeField
from reconciler.plan.capacity.demand import ClaimDoubt
from reconciler.plan.capacity.words import listed, ruled_out_words
from reconciler.plan.reasons import counted

# --- Shared figures: the size that a pool keeps, destinations of pods, and nodes without room.

_MOST_NAMED = 3

# The rule of a NodeProvisioner that decides how many nodes a pool keeps (see limits.py).
FloorRule = SizeField | Literal["warmNodes", "minUnutilizedGPUNodes", "minGPUUtilizationPercent", "gpuUtilization"]
# Why nodes take no pods from other nodes, whatever room they have.
AsideCause = Literal["leaving", "notReady", "driverUpgrade", "empty", "candidate", "other"]


class Floor(msgspec.Struct, frozen=True, gc=False):
    """How many nodes a pool keeps, and the rule that decides the number."""

    nodes: int
    by: FloorRule
    gpus_used: int = 0
    gpus_total: int = 0
    gpus_per_node: int = 0
    percent: int = 0  # minGPUUtilizationPercent
    spare: int = 0  # number of free nodes to keep: minUnutilizedGPUNodes or warmNodes
    closed: int = 0  # empty nodes that others have cordoned; they are no spare nodes

    @property
    def packed(self) -> int:
        """Number of nodes that the GPUs in use need."""
        return -(-self.gpus_used // self.gpus_per_node) if self.gpus_per_node else 0

    def with_spare(self, spare: int) -> int:
        """Number of nodes in a pool where `spare` of the nodes are free."""
        return self.packed + (spare + self.closed if spare else 0)


class Destinations(msgspec.Struct, frozen=True, gc=False):
    """Nodes that pods would move to: the first by name, and the number of further nodes."""

    first: tuple[str, ...] = ()
    more: int = 0


def destinations_of(nodes: tuple[str, ...]) -> Destinations:
    """`nodes`: sorted by name."""
    return Destinations(nodes[:_MOST_NAMED], max(0, len(nodes) - _MOST_NAMED))


class Aside(msgspec.Struct, frozen=True, gc=False):
    """Nodes that were excluded as destinations of a pod."""

    why: AsideCause
    nodes: int


class NodesWithoutRoom(msgspec.Struct, frozen=True, gc=False):
    """Why no node takes a pod."""

    ruled_out: Rejections = Rejections()
    aside: tuple[Aside, ...] = ()


class TaintTime(msgspec.Struct, frozen=True, gc=False):
    """The time in a taint."""

    value: str
    at: Instant | None = None  # None: unreadable


class FreezeEnd(msgspec.Struct, frozen=True, gc=False):
    """End of a freeze."""

    written: str
    at: Instant | None = None  # None: unreadable
    reason: str = ""


def _floor(floor: Floor) -> str:
    used = floor.gpus_used
    match floor.by:
        case "warmNodes" | "minUnutilizedGPUNodes":
            closed = f", plus {floor.closed} cordoned by others" if floor.closed else ""
            return f"{used} GPUs in use need {floor.packed}, and {floor.by} is {floor.spare}{closed}"
        case "gpuUtilization":
            return f"{used} of {floor.gpus_total} GPUs are in use, and the minimum is {floor.percent} %"
        case "minGPUUtilizationPercent":
            return f"{used} GPUs in use are {floor.percent} % of the GPUs of that many nodes"
        case field:
            return f"{field} is {floor.nodes}"


def _destinations(destinations: Destinations) -> str:
    more = f" and {destinations.more} more" if destinations.more else ""
    return ", ".join(destinations.first) + more or "other nodes"


_ASIDE: dict[AsideCause, str] = {
    "leaving": "leaving",
    "notReady": "unready",
    "driverUpgrade": "with a driver upgrade",
    "empty": "empty",
}


def _aside(aside: Aside) -> str:
    words = _ASIDE.get(aside.why)
    if words is None:
        return counted(aside.nodes, aside.why)
    return (
        f"{counted(aside.nodes, 'node')} {words}"
        if aside.why == "driverUpgrade"
        else counted(aside.nodes, f"{words} node")
    )


def _no_room(room: NodesWithoutRoom) -> str:
    aside = listed([_aside(each) for each in room.aside])
    parts = ruled_out_words(room.ruled_out), f"not considered: {aside}" if aside else ""
    return "; ".join(filter(None, parts)) or "no node remains"


def _taint_time(time: TaintTime) -> str:
    return time.value if time.at is None else timestamp(time.at)


def _freeze_end(end: FreezeEnd) -> str:
    reason = f" ({end.reason})" if end.reason else ""
    return f"until {end.written if end.at is None else timestamp(end.at)}{reason}"


def _claim_doubt(doubt: ClaimDoubt) -> str:
    match doubt.kind:
        case "absent":
            return "the claim does not exist"
        case "suspended":
            return "the claim is suspended"
        case "unreadable":
            return "the request of the claim can't be read"
        case "oneIsland":
            return "the claim requires GPUs of one island, and the GpuNodeStatus objects could not be read"
        case "otherCount":
            return f"the claim requests {doubt.claimed} GPUs, and the pod requests {doubt.asked}"


def _unread(unread: Unread) -> str:
    return f"{unread.kind}: {unread.why}"


def _quiet(quiet: Quiet) -> str:
    return f"the watch of {quiet.kind} has been silent since {timestamp(quiet.since)}"


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
