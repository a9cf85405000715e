"""Owner of the nodes of one instance type in a pool that are alive, and of what they have in common."""

from collections import Counter
from collections.abc import Mapping

from reconciler.fleet.node_facts import NodeFacts
from reconciler.model.cluster.node import Node


class SharedLabels:
    """Alive is a node that is ready and has GPUs."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeFacts] = {}
        self._labels: Counter[tuple[str, str]] = Counter()  # and how many nodes have each
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
        """The same node, seen anew; mostly it looks as before."""
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
        """Of those that have the most GPUs the last by name. There must be one."""
        if self._largest is None:
            self._largest = max(self._nodes.values(), key=lambda each: (each.gpus, each.name)).node
        return self._largest
