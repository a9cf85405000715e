"""Owner of what was made of the nodes of each pool in the plan before: where none is another, it is as it was."""

from collections.abc import Callable
from typing import Any, TypeVar

from reconciler.fleet.snapshot.snapshot import Snapshot

T = TypeVar("T")


class LookedAt:
    """`what_if.part(LookedAt)` is the one of a what-if."""

    def __init__(self, _: Snapshot) -> None:
        self._known: dict[str, tuple[object, object, Any]] = {}

    def again(self, pool: str, nodes: object, policy: object, look: Callable[[], T]) -> T:
        """`nodes` and `policy`: all that it depends on, and the same objects until something of them changes."""
        known = self._known.get(pool)
        if known is None or known[0] is not nodes or known[1] is not policy:
            known = self._known[pool] = nodes, policy, look()
        result: T = known[2]
        return result
