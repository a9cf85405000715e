"""Answers about all nodes, kept for the kinds of pods that are asked about most recently.

A question then costs what has changed since the last question about such a pod, and one lookup for each node that the
scheduler names. Without this, each question would look up the group of each node.
"""

from collections.abc import Callable

from reconciler.protocol.node_groups import Asked, NodeAnswer

MOST_KINDS = 64
_MOST_CHANGES = 20_000  # then the answers of kinds that were not asked about since are forgotten


class _OfKind:
    """The answers by node, and how many changes they contain."""

    __slots__ = ("by_node", "changes")

    def __init__(self, by_node: dict[str, NodeAnswer], changes: int) -> None:
        self.by_node, self.changes = by_node, changes


class KnownAnswers:
    """Owner of the answers, and of the names of nodes whose answers have changed since."""

    def __init__(self) -> None:
        self._kinds: dict[Asked, _OfKind] = {}  # the least recent first
        self._changed: list[str] = []  # names of nodes, in the order of the changes
        self._forgotten = 0  # earlier changes that the list no longer has

    def change(self, node: str) -> None:
        """The answers about this node may differ from now on."""
        self._changed.append(node)
        if len(self._changed) > _MOST_CHANGES:
            self._forgotten += len(self._changed)
            self._changed.clear()

    def of(
        self, asked: Asked, nodes: Callable[[], list[str]], find: Callable[[str], NodeAnswer | None]
    ) -> dict[str, NodeAnswer]:
        """The answers for such a pod about all known nodes. `find`: the answer about a node; None if there is no such
        node.
        """
        known, now = self._kinds.pop(asked, None), self._forgotten + len(self._changed)
        if known is None or known.changes < self._forgotten:
            known = _OfKind({name: found for name in nodes() if (found := find(name)) is not None}, now)
        elif known.changes < now:
            for name in dict.fromkeys(self._changed[known.changes - self._forgotten :]):
                found = find(name)
                if found is None:
                    known.by_node.pop(name, None)
                else:
                    known.by_node[name] = found
            known.changes = now
        self._kinds[asked] = known
        if len(self._kinds) > MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        return known.by_node
