"""The life of a smart pod, as a table: what it is, what happens to it, and what it is then.

Theory of operation. A smart pod is Pending until the scheduler binds it to the node that Karpenter bought for it, and
Scheduled until that node can be used. NodeReady lasts no longer than it takes to delete the pod: then it is Completed,
and the node goes on without it. Where no machine comes in time it is Failed, and so is what it asked for: the next way
to buy is another smart pod. Phase and retries stand on the pod, the rest is seen, so that a restart at any point goes
on. A move that is not in the table is refused, names both, and changes nothing.
"""

from enum import Enum


class SmartPodPhase(Enum):
    """Written on the pod but for the last moments of its life."""

    PENDING = "Pending"
    SCHEDULED = "Scheduled"
    NODE_READY = "NodeReady"
    COMPLETED = "Completed"
    FAILED = "Failed"


class PhaseEvent(Enum):
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


class InvalidTransition(Exception):
    """No such move."""


TABLE: dict[tuple[SmartPodPhase, PhaseEvent], SmartPodPhase] = {
    (SmartPodPhase.PENDING, PhaseEvent.BOUGHT): SmartPodPhase.PENDING,
    (SmartPodPhase.PENDING, PhaseEvent.LOST): SmartPodPhase.PENDING,
    (SmartPodPhase.PENDING, PhaseEvent.BOUND): SmartPodPhase.SCHEDULED,
    (SmartPodPhase.PENDING, PhaseEvent.NO_MACHINE): SmartPodPhase.FAILED,
    (SmartPodPhase.PENDING, PhaseEvent.TIMED_OUT): SmartPodPhase.FAILED,
    (SmartPodPhase.PENDING, PhaseEvent.ENDED): SmartPodPhase.FAILED,
    (SmartPodPhase.PENDING, PhaseEvent.NOT_NEEDED): SmartPodPhase.COMPLETED,
    (SmartPodPhase.PENDING, PhaseEvent.DUPLICATE): SmartPodPhase.COMPLETED,
    (SmartPodPhase.SCHEDULED, PhaseEvent.USABLE): SmartPodPhase.NODE_READY,
    (SmartPodPhase.SCHEDULED, PhaseEvent.TIMED_OUT): SmartPodPhase.FAILED,
    (SmartPodPhase.SCHEDULED, PhaseEvent.ENDED): SmartPodPhase.FAILED,
    (SmartPodPhase.NODE_READY, PhaseEvent.CLEANED): SmartPodPhase.COMPLETED,
    (SmartPodPhase.FAILED, PhaseEvent.CLEARED): SmartPodPhase.COMPLETED,
    (SmartPodPhase.FAILED, PhaseEvent.NOT_NEEDED): SmartPodPhase.COMPLETED,
    (SmartPodPhase.FAILED, PhaseEvent.BOUND): SmartPodPhase.SCHEDULED,
}


_WRITTEN = (SmartPodPhase.PENDING, SmartPodPhase.SCHEDULED, SmartPodPhase.FAILED)


def after(phase: SmartPodPhase, *events: PhaseEvent) -> SmartPodPhase:
    """What it is when all of that has happened. Raises Refused."""
    for event in events:
        try:
            phase = TABLE[phase, event]
        except KeyError:
            raise InvalidTransition(f"a smart pod that is {phase.value} can't learn that {event.value}") from None
    return phase


def read(written: str) -> SmartPodPhase:
    """As it stands on a pod; what we never write there counts as nothing written."""
    return next((each for each in _WRITTEN if each.value == written), SmartPodPhase.PENDING)
