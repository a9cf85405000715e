"""Owner of all pools in sums; they move on from sighting to sighting by the nodes that changed, and what is on them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from reconciler.fleet.node_facts import NodeFacts, facts_of
from reconciler.fleet.occupancy import Occupancy
from reconciler.fleet.snapshot.diff import SnapshotDiff
from reconciler.fleet.snapshot.pool import NodeUsage, PoolTotals
from reconciler.model import names
from reconciler.model.cluster.node import Node

Lent = Mapping[str, int]  # GPUs, by node

_NO_NODES = PoolTotals()


class PoolIndex:
    """A cycle costs what has changed."""

    def __init__(self) -> None:
        self.zones: Counter[str] = Counter()  # nodes by the zone in which they say that they are
        self._pools: dict[str, PoolTotals] = {}
        self._facts: dict[str, NodeFacts] = {}  # of all nodes, those that are being deleted among them
        self._unsettled: dict[str, NodeFacts] = {}
        self._drained: dict[str, NodeFacts] = {}
        self._unfit: dict[str, NodeFacts] = {}
        self._usages: dict[str, NodeUsage] = {}  # as they were counted
        self._lent: Lent = {}

    def of(self, pool: str) -> PoolTotals:
        return self._pools.get(pool, _NO_NODES)

    @property
    def unsettled(self) -> Sequence[NodeFacts]:
        """Nodes that are being deleted, or that bear a taint by which somebody takes them away; by name."""
        return [self._unsettled[name] for name in sorted(self._unsettled)]

    @property
    def drained(self) -> Sequence[NodeFacts]:
        """Those that bear a taint of the planner that drains, candidates included; by name."""
        return [self._drained[name] for name in sorted(self._drained)]

    @property
    def unfit(self) -> Sequence[NodeFacts]:
        """Those to which nothing should be moved; in no particular order."""
        return list(self._unfit.values())

    def advance(self, change: SnapshotDiff, occupancy: Occupancy, lent: Lent) -> None:
        """To the nodes as they were seen next; the others stand there already."""
        touched = {*occupancy.take_touched(), *self._read(change), *_differing(self._lent, lent)}
        self._lent = lent
        for name in sorted(touched):
            self._count(name, occupancy)

    def _read(self, change: SnapshotDiff) -> Iterable[str]:
        """The names of those that are not what they were."""
        for node in change.gone_nodes:
            self._facts.pop(node.name, None)
            self._unsettled.pop(node.name, None)
            self._drained.pop(node.name, None)
            self._unfit.pop(node.name, None)
            self._count_zone(node, -1)
        for node in change.came_nodes:
            facts = self._facts[node.name] = facts_of(node)
            self._count_zone(node, 1)
            if facts.is_leaving or facts.is_being_removed:
                self._unsettled[node.name] = facts
            if facts.is_drained:
                self._drained[node.name] = facts
            if facts.is_unfit:
                self._unfit[node.name] = facts
        return (node.name for node in (*change.gone_nodes, *change.came_nodes))

    def _count_zone(self, node: Node, sign: int) -> None:
        if (zone := node.metadata.labels.get(names.ZONE)) is not None:
            self.zones[zone] += sign

    def _count(self, name: str, occupancy: Occupancy) -> None:
        before, facts = self._usages.pop(name, None), self._facts.get(name)
        after = None
        if facts is not None and not facts.is_leaving:
            requested, counting = occupancy.gpus.get(name, 0), occupancy.counting.get(name, 0)
            after = self._usages[name] = NodeUsage(facts, requested, counting, self._lent.get(name, 0))
        if before is not None and (after is None or after.facts.pool != before.facts.pool):
            self._pools[before.facts.pool].move(before, None)
            before = None
        if after is not None:
            self._pools.setdefault(after.facts.pool, PoolTotals()).move(before, after)


def _differing(before: Lent, after: Lent) -> set[str]:
    return set() if before is after else {name for name, _ in before.items() ^ after.items()}
