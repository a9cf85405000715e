"""What to do next about a kind that is followed: a table, from what came of the last step.

A kind is looked for (is it served, and where?), listed, and watched from the version of its list. A watch that ends,
however it ends, is taken up again where it was; only what has expired, or has not been confirmed for long, is listed
again.
"""

from enum import Enum, auto

import msgspec

from reconciler.kube.watch.list_result import What


class Phase(Enum):
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

    phase: Phase | None
    wait: Wait
    tell: Tell


NEXT = {
    What.SERVED: Next(Phase.LIST, Wait.NONE, Tell.NOTHING),
    What.NOT_SERVED: Next(Phase.LOOK, Wait.INTERVAL, Tell.ABSENT),
    What.UNSUITED: Next(Phase.LOOK, Wait.INTERVAL, Tell.REFUSAL),
    What.LISTED: Next(Phase.WATCH, Wait.NONE, Tell.NOTHING),
    What.ENDED: Next(Phase.WATCH, Wait.BACKOFF, Tell.NOTHING),
    What.BROKEN: Next(Phase.WATCH, Wait.BACKOFF, Tell.TROUBLE),
    What.EXPIRED: Next(Phase.LIST, Wait.BACKOFF, Tell.TROUBLE),
    What.MISSING: Next(Phase.LOOK, Wait.BACKOFF, Tell.TROUBLE),
    What.FORBIDDEN: Next(None, Wait.BACKOFF, Tell.REFUSAL),
    What.OLDER: Next(Phase.LIST, Wait.BACKOFF, Tell.REFUSAL),
    What.FAILED: Next(None, Wait.BACKOFF, Tell.TROUBLE),
}


def next_step(phase: Phase, what: What, is_overdue: bool) -> Next:
    """`is_overdue`: nothing has confirmed what is known of the kind for so long that it should be listed again."""
    following = NEXT[what]
    after = following.phase or phase
    # A server need not send bookmarks, and a kind of which nothing changes has no events: its lists confirm it.
    if after is Phase.WATCH and is_overdue and what is not What.LISTED:
        after = Phase.LIST
    return msgspec.structs.replace(following, phase=after)
