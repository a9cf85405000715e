"""The nodes of one sighting, by name and by pool; made once for as long as none of them changes."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from reconciler.model import names
from reconciler.model.cluster.node import Node


class NodesSeen:
    """Each index is made when it is first asked for."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def by_pool(self) -> dict[str, list[Node]]:
        """In each pool by name."""
        found = defaultdict(list)
        for node in sorted(self.nodes, key=lambda each: each.name):
            found[node.pool].append(node)
        return dict(found)

    @cached_property
    def taken_away(self) -> Sequence[Node]:
        """Those that are being deleted, or that Karpenter disrupts; in the order in which they were seen."""
        return [each for each in self.nodes if each.metadata.leaving or each.taint(names.DISRUPTED) is not None]
