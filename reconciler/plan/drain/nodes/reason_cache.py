"""Owner of what was told of each node in the plan before: where nothing of it is different, the same is told again."""

from collections.abc import Callable

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.plan.reason import Reason

_MOST_A_NODE = 8  # of nodes that are gone it is forgotten at some time


class Said:
    """`what_if.part(Said)` is the one of a what-if."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._rows = snapshot.rows
        self._known: dict[tuple[str, str], tuple[object, Reason]] = {}

    def again(self, node: str, code: str, by: object, tell: Callable[[], Reason]) -> Reason:
        """`by`: all that the reason depends on beside the name of the node."""
        known = self._known.get((node, code))
        if known is None or known[0] != by:
            if len(self._known) > _MOST_A_NODE * self._rows.capacity:
                self._known.clear()
            known = self._known[node, code] = by, tell()
        return known[1]
