"""How the facts of drains are written that are more than a name, a number or a time."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.cluster.observed import Quiet, Unread
from reconciler.model.instant import timestamp
from reconciler.plan.capacity.claims import ClaimDoubt
from reconciler.plan.capacity.ruled_out_words import listed, ruled_out_words
from reconciler.plan.drain.codes.figures import (
    Aside,
    AsideCause,
    Destinations,
    Floor,
    FreezeEnd,
    NodesWithoutRoom,
    TaintTime,
)
from reconciler.plan.reasons import counted


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
