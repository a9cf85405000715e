"""The life of a smart pod, as a table: what it is, what happens to it, and what it is then.

Theory of operation. A smart pod is Pending until the scheduler binds it to the node that Karpenter bought for it, and
Scheduled until that node can be used. NodeReady lasts no longer than it takes to delete the pod: then it is Completed,
and the node goes on without it. Where no machine comes in time it is Failed, and so is what it asked for: the next way
to buy is another smart pod. Phase and retries stand on the pod, the rest is seen, so that a restart at any point goes
on. A move that is not in the table is refused, names both, and changes nothing.
"""

from enum import Enum


class Phase(Enum):
    """Written on the pod but for the last moments of its life."""

    PENDING = "Pending"
    SCHEDULED = "Scheduled"
    NODE_READY = "NodeReady"
    COMPLETED = "Completed"
    FAILED = "Failed"


class Event(Enum):
    """What is seen of it, of its machine and of those it is for."""

    BOUGHT = "its NodeClaim has come"
    LOST = "its NodeClaim is gone"
    BOUND = "its node is there"
    USABLE = "its node can be used"
    CLEANED = "it is deleted, its work done"
    NO_MACHINE = "no NodeClaim came in time"
    TIMED_OUT = "its time is over"
    ENDED = "its node or kubelet ended it"
    NOT_NEEDED = "nobody waits for it any more"
    DUPLICATE = "another asks for the same"
    CLEARED = "what failed is cleaned up"


class Refused(Exception):
    """No such move."""


TABLE: dict[tuple[Phase, Event], Phase] = {
    (Phase.PENDING, Event.BOUGHT): Phase.PENDING,
    (Phase.PENDING, Event.LOST): Phase.PENDING,
    (Phase.PENDING, Event.BOUND): Phase.SCHEDULED,
    (Phase.PENDING, Event.NO_MACHINE): Phase.FAILED,
    (Phase.PENDING, Event.TIMED_OUT): Phase.FAILED,
    (Phase.PENDING, Event.ENDED): Phase.FAILED,
    (Phase.PENDING, Event.NOT_NEEDED): Phase.COMPLETED,
    (Phase.PENDING, Event.DUPLICATE): Phase.COMPLETED,
    (Phase.SCHEDULED, Event.USABLE): Phase.NODE_READY,
    (Phase.SCHEDULED, Event.TIMED_OUT): Phase.FAILED,
    (Phase.SCHEDULED, Event.ENDED): Phase.FAILED,
    (Phase.NODE_READY, Event.CLEANED): Phase.COMPLETED,
    (Phase.FAILED, Event.CLEARED): Phase.COMPLETED,
    (Phase.FAILED, Event.NOT_NEEDED): Phase.COMPLETED,
    (Phase.FAILED, Event.BOUND): Phase.SCHEDULED,
}


_WRITTEN = (Phase.PENDING, Phase.SCHEDULED, Phase.FAILED)


def after(phase: Phase, *events: Event) -> Phase:
    """What it is when all of that has happened. Raises Refused."""
    for event in events:
        try:
            phase = TABLE[phase, event]
        except KeyError:
            raise Refused(f"a smart pod that is {phase.value} can't learn that {event.value}") from None
    return phase


def read(written: str) -> Phase:
    """As it stands on a pod; what we never write there counts as nothing written."""
    return next((each for each in _WRITTEN if each.value == written), Phase.PENDING)
