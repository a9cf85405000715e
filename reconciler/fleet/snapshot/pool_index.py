"""Owner of those objects of a kind that belong on it, by pool and in order of names: what came is put there, what is
gone taken off, and lists that were handed out stay as they are.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar


class HasName(Protocol):
    """Of no namespace, so that its name tells it from all others of its kind."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=HasName)


def _all(_: object) -> bool:
    return True


class PerPoolIndex(Generic[T]):
    """A pool that nobody changed keeps the very list that was handed out."""

    def __init__(self, pool_of: Callable[[T], str], belongs: Callable[[T], bool] = _all) -> None:
        self._pool_of = pool_of
        self._belongs = belongs
        self._pools: dict[str, dict[str, T]] = {}
        self._lists: dict[str, list[T]] = {}

    def move(self, gone: Iterable[T], came: Iterable[T]) -> None:
        """One that was replaced is gone, and came."""
        for each in gone:
            if self._belongs(each):
                pool = self._pool_of(each)
                self._pools[pool].pop(each.name, None)
                self._lists.pop(pool, None)
        for each in came:
            if self._belongs(each):
                pool = self._pool_of(each)
                self._pools.setdefault(pool, {})[each.name] = each
                self._lists.pop(pool, None)

    def of(self, pool: str) -> Sequence[T]:
        """Those of one pool, by name."""
        result = self._lists.get(pool)
        if result is None:
            there = self._pools.get(pool, {})
            result = self._lists[pool] = [there[name] for name in sorted(there)]
        return result

    def all(self) -> Sequence[T]:
        """Those of all pools, pool by pool."""
        return [each for pool in sorted(self._pools) for each in self.of(pool)]
