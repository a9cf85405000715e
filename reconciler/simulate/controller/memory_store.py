"""Owner of what the controller of an imagined cluster remembers; it outlives its crashes."""

from reconciler.model.plan.memory import Memory
from reconciler.ports import Stale, VersionedMemory


class Remembered:
    """A MemoryStore in which each version is a number."""

    def __init__(self, memory: Memory) -> None:
        self._stored = VersionedMemory(memory, "0")

    def load(self) -> VersionedMemory:
        return self._stored

    def save(self, memory: Memory, after: VersionedMemory) -> VersionedMemory:
        if after.version != self._stored.version:
            raise Stale
        self._stored = VersionedMemory(memory, str(int(after.version) + 1))
        return self._stored
