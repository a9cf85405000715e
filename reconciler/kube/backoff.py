"""How long to wait after a failure: twice as long each time, never all at once. A Backoff owns the count in a row.

A connection that opens and closes at once is no success: only what has lasted a while starts the count afresh, so that
nothing that fails quickly is asked for in a busy loop.
"""

import random

import msgspec

_MOST_DOUBLINGS = 30  # beyond any bound that could be wished for


class BackoffBounds(msgspec.Struct, frozen=True):
    """The bounds of waiting."""

    first_seconds: float = 0.2
    most_seconds: float = 30.0
    healthy_seconds: float = 10.0  # what lasted that long was no failure


class Backoff:
    """Waits between half of a bound and all of it; the bound doubles with each failure in a row."""

    def __init__(self, waits: BackoffBounds, chance: random.Random) -> None:
        self._waits = waits
        self._chance = chance
        self._failures = 0

    def seconds_after(self, lasted_seconds: float) -> float:
        """How long to wait now that something has failed, or ended, which had lasted that long."""
        if lasted_seconds >= self._waits.healthy_seconds:
            self._failures = 0
        doublings = min(self._failures, _MOST_DOUBLINGS)
        self._failures += 1
        bound = min(self._waits.most_seconds, self._waits.first_seconds * float(2**doublings))
        return bound * (0.5 + self._chance.random() / 2)
