"""Owner of one pool in sums: its nodes that are not being deleted, how they are used, and which of them are empty."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence

import msgspec

from reconciler.fleet.node_facts import NodeFacts
from reconciler.fleet.snapshot.shared_labels import SharedLabels


class NodeUsage(msgspec.Struct, frozen=True, gc=False):
    """A node, and what is on it."""

    facts: NodeFacts
    requested: int  # GPUs that unfinished pods ask for
    counting: int  # pods that count
    lent: int  # GPUs that are lent to claims

    @property
    def gpus_used(self) -> int:
        """The larger of what is asked for and what is lent; at most what the node has."""
        return min(self.facts.gpus, max(self.requested, self.lent))

    @property
    def is_empty(self) -> bool:
        return not self.counting and not self.lent


class PoolTotals:
    """Sums and lists are to be read, and never to be changed."""

    def __init__(self) -> None:
        self.unready = 0
        self.busy = 0  # nodes with a pod that counts
        self.gpus_used = 0
        self.gpus_total = 0
        self.sorts: Counter[int] = Counter()  # nodes by their GPUs
        self.staying: Counter[tuple[str, str]] = Counter()  # nodes that nobody takes away, by what they are
        self.labelled: Counter[str] = Counter()  # nodes by the provisioner that they are labelled with
        self._facts: dict[str, NodeFacts] = {}
        self._names: list[str] = []  # in order
        self._nodes: list[NodeFacts] | None = None
        self._node_factses: dict[str, NodeFacts] = {}
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
        """Those that bear a taint by which somebody takes them away, by name."""
        return [self._node_factses[name] for name in sorted(self._node_factses)]

    @property
    def empty(self) -> Sequence[NodeFacts]:
        """Those on which nothing counts and of which nothing is lent, by name."""
        return [self._empty[name] for name in sorted(self._empty)]

    @property
    def closed(self) -> Sequence[NodeFacts]:
        """Those that bear the taint with which they came, by name."""
        return [self._closed[name] for name in sorted(self._closed)]

    def alike(self, instance_type: str) -> SharedLabels | None:
        """Those of an instance type that are alive; None where there are none."""
        return self._alike.get(instance_type) or None

    def move(self, before: NodeUsage | None, after: NodeUsage | None) -> None:
        """A node came, went, or is used otherwise; both are of the same name."""
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
            (self._node_factses, facts.is_being_removed),
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
        for among in (self._facts, self._node_factses, self._empty, self._closed):
            among.pop(name, None)

    def _compare(self, before: NodeFacts | None, after: NodeFacts | None) -> None:
        """Those that are alive, by what they have in common."""
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
