"""Inputs: all that a plan follows from; exactly what `dump` writes and `replay` reads."""

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.planned.memory import Hints, Memory


class Inputs(msgspec.Struct, frozen=True):
    """The same inputs give the same plan, byte for byte."""

    desired: Desired
    observed: Observed
    now: Instant
    memory: Memory = Memory()
    hints: Hints = Hints()
    budget: int = 1_000_000  # predicate evaluations that the planners may spend
    prune: tuple[str, ...] = ()  # titles of objects that a person agreed to lose: NodePool/old
