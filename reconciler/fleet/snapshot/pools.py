"""Totals of all pools, updated incrementally from changed nodes and bookings."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from reconciler.fleet.occupancy import NodeFacts, Occupancy, facts_of
from reconciler.fleet.snapshot.diff import SnapshotDiff
from reconciler.model import names
from reconciler.model.cluster.node import Node

# --- Owner of the live nodes of one instance type in a pool, and of their common labels.


class SharedLabels:
    """A node is live if it is ready and has GPUs."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeFacts] = {}
        self._labels: Counter[tuple[str, str]] = Counter()  # with the number of nodes
        self._shared: dict[str, str] | None = None
        self._largest: Node | None = None

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def put(self, facts: NodeFacts) -> None:
        self._nodes[facts.name] = facts
        self._labels.update(facts.node.metadata.labels.items())
        self._shared = self._largest = None

    def take(self, facts: NodeFacts) -> None:
        del self._nodes[facts.name]
        for label in facts.node.metadata.labels.items():
            self._labels[label] -= 1
            if not self._labels[label]:
                del self._labels[label]
        self._shared = self._largest = None

    def replace(self, before: NodeFacts, after: NodeFacts) -> None:
        """Replaces a node by its new state; mostly nothing changes."""
        if before.node.metadata.labels != after.node.metadata.labels:
            self.take(before)
            self.put(after)
        else:
            self._nodes[after.name] = after
            self._largest = None

    @property
    def shared(self) -> Mapping[str, str]:
        """The labels that all of them have."""
        if self._shared is None:
            many = len(self._nodes)
            self._shared = dict(sorted(label for label, count in self._labels.items() if count == many))
        return self._shared

    @property
    def largest(self) -> Node:
        """The last node by name among those with the most GPUs. There must be one."""
        if self._largest is None:
            self._largest = max(self._nodes.values(), key=lambda each: (each.gpus, each.name)).node
        return self._largest


# --- Owner of the totals of one pool: nodes that are not being deleted, their utilization, and empty nodes.


class NodeUsage(msgspec.Struct, frozen=True, gc=False):
    """A node and its utilization."""

    facts: NodeFacts
    requested: int  # GPUs requested by unfinished pods
    counting: int  # workload pods
    lent: int  # GPUs lent to claims

    @property
    def gpus_used(self) -> int:
        """The maximum of requested and lent GPUs, limited by the node's GPUs."""
        return min(self.facts.gpus, max(self.requested, self.lent))

    @property
    def is_empty(self) -> bool:
        return not self.counting and not self.lent


class PoolTotals:
    """Callers must not modify the totals and lists."""

    def __init__(self) -> None:
        self.unready = 0
        self.busy = 0  # nodes with a workload pod
        self.pods = 0  # workload pods
        self.gpus_used = 0
        self.gpus_total = 0
        self.sorts: Counter[int] = Counter()  # nodes by their number of GPUs
        self.staying: Counter[tuple[str, str]] = Counter()  # nodes that are not being removed, by kind
        self.labelled: Counter[str] = Counter()  # nodes by provisioner label
        self._facts: dict[str, NodeFacts] = {}
        self._names: list[str] = []  # sorted
        self._nodes: list[NodeFacts] | None = None
        self._leaving: dict[str, NodeFacts] = {}
        self._empty: dict[str, NodeFacts] = {}
        self._closed: dict[str, NodeFacts] = {}
        self._alike: dict[str, SharedLabels] = {}

    @property
    def nodes(self) -> Sequence[NodeFacts]:
        """By name."""
        if self._nodes is None:
            self._nodes = [self._facts[name] for name in self._names]
        return self._nodes

    @property
    def leaving_nodes(self) -> Sequence[NodeFacts]:
        """Nodes with a removal taint, by name."""
        return [self._leaving[name] for name in sorted(self._leaving)]

    @property
    def empty(self) -> Sequence[NodeFacts]:
        """Nodes without workload pods and lent GPUs, by name."""
        return [self._empty[name] for name in sorted(self._empty)]

    @property
    def closed(self) -> Sequence[NodeFacts]:
        """Nodes with the startup taint, by name."""
        return [self._closed[name] for name in sorted(self._closed)]

    def alike(self, instance_type: str) -> SharedLabels | None:
        """Live nodes of an instance type; None if there are none."""
        return self._alike.get(instance_type) or None

    def move(self, before: NodeUsage | None, after: NodeUsage | None) -> None:
        """Applies an added, removed or changed node; both arguments have the same name."""
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, 1)
            self._list(after)
        elif before is not None:
            self._strike(before.facts.name)
        were, are = (each.facts if each is not None else None for each in (before, after))
        if were is not are:
            self._nodes = None
            self._compare(were, are)

    def _count(self, usage: NodeUsage, sign: int) -> None:
        facts = usage.facts
        self.unready += sign * (not facts.is_ready)
        self.busy += sign * (usage.counting > 0)
        self.pods += sign * usage.counting
        self.gpus_used += sign * usage.gpus_used
        self.gpus_total += sign * facts.gpus
        self.sorts[facts.gpus] += sign
        self.staying[facts.instance_type, facts.capacity_type] += sign * (not facts.is_being_removed)
        self.labelled[facts.provisioner] += sign

    def _list(self, usage: NodeUsage) -> None:
        facts, name = usage.facts, usage.facts.name
        if name not in self._facts:
            insort(self._names, name)
        self._facts[name] = facts
        belonging = (
            (self._leaving, facts.is_being_removed),
            (self._empty, usage.is_empty),
            (self._closed, facts.is_closed),
        )
        for among, belongs in belonging:
            if belongs:
                among[name] = facts
            else:
                among.pop(name, None)

    def _strike(self, name: str) -> None:
        del self._names[bisect_left(self._names, name)]
        for among in (self._facts, self._leaving, self._empty, self._closed):
            among.pop(name, None)

    def _compare(self, before: NodeFacts | None, after: NodeFacts | None) -> None:
        """Updates the live nodes and their common labels."""
        before = before if before is not None and _is_alive(before) else None
        after = after if after is not None and _is_alive(after) else None
        if before is not None and after is not None and before.instance_type == after.instance_type:
            self._alike[after.instance_type].replace(before, after)
            return
        if before is not None:
            self._alike[before.instance_type].take(before)
        if after is not None:
            self._alike.setdefault(after.instance_type, SharedLabels()).put(after)


def _is_alive(facts: NodeFacts) -> bool:
    return facts.is_ready and facts.gpus > 0


Lent = Mapping[str, int]  # GPUs, by node

_NO_NODES = PoolTotals()


class PoolIndex:
    """Totals by pool; an update costs what has changed."""

    def __init__(self) -> None:
        self.zones: Counter[str] = Counter()  # nodes by zone label
        self._pools: dict[str, PoolTotals] = {}
        self._facts: dict[str, NodeFacts] = {}  # of all nodes, including those that are being deleted
        self._unsettled: dict[str, NodeFacts] = {}
        self._drained: dict[str, NodeFacts] = {}
        self._drained_by_name: Sequence[NodeFacts] | None = None
        self._unfit: dict[str, NodeFacts] = {}
        self._usages: dict[str, NodeUsage] = {}  # as included in the totals
        self._lent: Lent = {}

    def of(self, pool: str) -> PoolTotals:
        return self._pools.get(pool, _NO_NODES)

    @property
    def unsettled(self) -> Sequence[NodeFacts]:
        """Nodes that are being deleted or have a removal taint; by name."""
        return [self._unsettled[name] for name in sorted(self._unsettled)]

    @property
    def drained(self) -> Sequence[NodeFacts]:
        """Nodes with a taint of the drain planner, including candidates; by name."""
        if self._drained_by_name is None:
            self._drained_by_name = [self._drained[name] for name in sorted(self._drained)]
        return self._drained_by_name

    @property
    def unfit(self) -> Sequence[NodeFacts]:
        """Nodes that should receive no moved pods; in no particular order."""
        return list(self._unfit.values())

    def advance(self, change: SnapshotDiff, occupancy: Occupancy, lent: Lent) -> None:
        """Applies changed nodes; the occupancy must be up to date."""
        touched = {*occupancy.take_touched(), *self._read(change), *_differing(self._lent, lent)}
        self._lent = lent
        for name in sorted(touched):
            self._count(name, occupancy)

    def _read(self, change: SnapshotDiff) -> Iterable[str]:
        """The names of changed nodes."""
        if change.gone_nodes or change.came_nodes:
            self._drained_by_name = None
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


# --- Per-pool index of objects, sorted by name. Returned lists are never mutated.


class HasName(Protocol):
    """A cluster-scoped object: its name is unique within its kind."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=HasName)


def _all(_: object) -> bool:
    return True


class PerPoolIndex(Generic[T]):
    """The list of an unchanged pool keeps its identity."""

    def __init__(self, pool_of: Callable[[T], str], belongs: Callable[[T], bool] = _all) -> None:
        self._pool_of = pool_of
        self._belongs = belongs
        self._pools: dict[str, dict[str, T]] = {}
        self._lists: dict[str, list[T]] = {}

    def move(self, gone: Iterable[T], came: Iterable[T]) -> None:
        """Applies removed and added objects; a replaced object is both."""
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
        """Objects of one pool, by name."""
        result = self._lists.get(pool)
        if result is None:
            there = self._pools.get(pool, {})
            result = self._lists[pool] = [there[name] for name in sorted(there)]
        return result

    def all(self) -> Sequence[T]:
        """Objects of all pools, pool by pool."""
        return [each for pool in sorted(self._pools) for each in self.of(pool)]
