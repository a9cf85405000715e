"""Owner of the nodes by name and by pool; it moves on from one sighting to the next by what changed."""

from collections.abc import Sequence

from reconciler.fleet.snapshot.pool_index import PerPoolIndex
from reconciler.model import names
from reconciler.model.cluster.node import Node


class NodeIndex:
    """As of the sighting to which it was last advanced."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.by_name: dict[str, Node] = {}  # not to be changed
        self._by_pool = PerPoolIndex[Node](_pool_of)
        self._taken_away = PerPoolIndex[Node](_pool_of, _is_taken_away)
        self._frozen = PerPoolIndex[Node](_pool_of, _is_frozen)
        self.advance((), nodes)

    def advance(self, gone: Sequence[Node], came: Sequence[Node]) -> None:
        """To the nodes as they were seen next: those that are gone, and that came."""
        for each in gone:
            self.by_name.pop(each.name, None)
        for each in came:
            self.by_name[each.name] = each
        for shelf in (self._by_pool, self._taken_away, self._frozen):
            shelf.move(gone, came)

    def of(self, pool: str) -> Sequence[Node]:
        """By name."""
        return self._by_pool.of(pool)

    def taken_away(self) -> Sequence[Node]:
        """Those that are being deleted, or that Karpenter disrupts."""
        return self._taken_away.all()

    def frozen(self) -> Sequence[Node]:
        """Those that say until when they are frozen, whether that is over or not."""
        return self._frozen.all()


def _pool_of(node: Node) -> str:
    return node.pool


def _is_taken_away(node: Node) -> bool:
    return node.metadata.leaving or node.taint(names.DISRUPTED) is not None


def _is_frozen(node: Node) -> bool:
    return bool(node.metadata.annotations.frozen_until)
