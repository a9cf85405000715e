"""Owner of what the controller of an imagined cluster remembers; it outlives its crashes."""

from reconciler.model.plan.memory import Memory
from reconciler.ports import Stale, Stored


class Remembered:
    """A MemoryStore in which each version is a number."""

    def __init__(self, memory: Memory) -> None:
        self._stored = Stored(memory, "0")

    def load(self) -> Stored:
        return self._stored

    def save(self, memory: Memory, after: Stored) -> Stored:
        if after.version != self._stored.version:
            raise Stale
        self._stored = Stored(memory, str(int(after.version) + 1))
        return self._stored
