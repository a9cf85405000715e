"""Evictions that fail whatever budgets say: an API server in trouble answers 429 or 500, or not at all.

Of those that are not answered some take effect. Owner of whether it is so now.
"""

from random import Random

import msgspec

from reconciler.model.plan.action import Evict
from reconciler.model.plan.decision import Decision
from reconciler.protocol.preconditions import WriteResult


class Failure(msgspec.Struct, frozen=True):
    """What is told of one, and whether it takes effect all the same."""

    result: WriteResult
    takes_effect: bool = False


_WAYS = (
    Failure(WriteResult("retry", "the API server says 429: too many requests")),
    Failure(WriteResult("retry", "the API server says 500: an error on the server")),
    Failure(WriteResult("unknown", "no answer came")),
    Failure(WriteResult("unknown", "no answer came"), takes_effect=True),
)


class Failing:
    """Of a world; it fails while somebody has begun and not ended it."""

    def __init__(self) -> None:
        self._going_on = 0
        self._chance = Random(0)  # noqa: S311 - whoever begins brings another

    def begin(self, chance: Random) -> None:
        self._going_on += 1
        self._chance = chance

    def end(self) -> None:
        self._going_on -= 1

    @property
    def goes_on(self) -> bool:
        return self._going_on > 0

    def of(self, decision: Decision) -> Failure | None:
        """One in three is answered as usual."""
        if not self.goes_on or not isinstance(decision.act, Evict) or self._chance.random() < 1 / 3:
            return None
        return self._chance.choice(_WAYS)
