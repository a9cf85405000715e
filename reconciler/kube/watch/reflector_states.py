"""What to do next about a kind that is followed: a table, from what came of the last step.

A kind is looked for (is it served, and where?), listed, and watched from the version of its list. A watch that ends,
however it ends, is taken up again where it was; only what has expired, or has not been confirmed for long, is listed
again.
"""

from enum import Enum, auto

import msgspec

from reconciler.kube.watch.list_result import ListEnding


class ReflectorPhase(Enum):
    """What is tried."""

    LOOK = auto()
    LIST = auto()
    WATCH = auto()


class Wait(Enum):
    """How long before the next step."""

    NONE = auto()
    BACKOFF = auto()
    INTERVAL = auto()  # until a kind that is absent may have come


class Tell(Enum):
    """What the store is told of the last step; a list and events it was told on the way."""

    NOTHING = auto()
    ABSENT = auto()
    TROUBLE = auto()  # what was seen holds until it is stale
    REFUSAL = auto()  # it can't be relied on from now


class Next(msgspec.Struct, frozen=True):
    """What follows; without a phase, the same is tried again."""

    phase: ReflectorPhase | None
    wait: Wait
    tell: Tell


NEXT = {
    ListEnding.SERVED: Next(ReflectorPhase.LIST, Wait.NONE, Tell.NOTHING),
    ListEnding.NOT_SERVED: Next(ReflectorPhase.LOOK, Wait.INTERVAL, Tell.ABSENT),
    ListEnding.UNSUITED: Next(ReflectorPhase.LOOK, Wait.INTERVAL, Tell.REFUSAL),
    ListEnding.LISTED: Next(ReflectorPhase.WATCH, Wait.NONE, Tell.NOTHING),
    ListEnding.ENDED: Next(ReflectorPhase.WATCH, Wait.BACKOFF, Tell.NOTHING),
    ListEnding.BROKEN: Next(ReflectorPhase.WATCH, Wait.BACKOFF, Tell.TROUBLE),
    ListEnding.EXPIRED: Next(ReflectorPhase.LIST, Wait.BACKOFF, Tell.TROUBLE),
    ListEnding.MISSING: Next(ReflectorPhase.LOOK, Wait.BACKOFF, Tell.TROUBLE),
    ListEnding.FORBIDDEN: Next(None, Wait.BACKOFF, Tell.REFUSAL),
    ListEnding.OLDER: Next(ReflectorPhase.LIST, Wait.BACKOFF, Tell.REFUSAL),
    ListEnding.FAILED: Next(None, Wait.BACKOFF, Tell.TROUBLE),
}


def next_step(phase: ReflectorPhase, ending: ListEnding, is_overdue: bool) -> Next:
    """`is_overdue`: nothing has confirmed what is known of the kind for so long that it should be listed again."""
    following = NEXT[ending]
    after = following.phase or phase
    # A server need not send bookmarks, and a kind of which nothing changes has no events: its lists confirm it.
    if after is ReflectorPhase.WATCH and is_overdue and ending is not ListEnding.LISTED:
        after = ReflectorPhase.LIST
    return msgspec.structs.replace(following, phase=after)
