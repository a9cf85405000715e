"""What rules out nodes for a pod, counted by predicate and by kind of node."""

from collections.abc import Mapping

import msgspec


class NodesOfKind(msgspec.Struct, frozen=True, gc=False):
    """How many nodes of a pool and an instance type."""

    kind: str
    nodes: int


class RefusingPredicate(msgspec.Struct, frozen=True, gc=False):
    """The nodes that one predicate rules out."""

    predicate: str
    kinds: tuple[NodesOfKind, ...]


class Rejections(msgspec.Struct, frozen=True, gc=False):
    """Why nodes do not take a pod."""

    by: tuple[RefusingPredicate, ...] = ()  # in the order of predicates
    free: tuple[NodesOfKind, ...] = ()  # nodes that nothing rules out: it would fit there alone

    @property
    def totals(self) -> dict[str, int]:
        """Nodes of any kind, by the name of a predicate, in the order of predicates."""
        return {each.predicate: sum(kind.nodes for kind in each.kinds) for each in self.by}


def ruled_out(by: Mapping[str, Mapping[str, int]], free: Mapping[str, int]) -> Rejections:
    """`by`: name of a predicate -> how many nodes of which kind."""
    return Rejections(tuple(RefusingPredicate(name, of_kinds(kinds)) for name, kinds in by.items()), of_kinds(free))


def of_kinds(kinds: Mapping[str, int]) -> tuple[NodesOfKind, ...]:
    """By name."""
    return tuple(NodesOfKind(kind, nodes) for kind, nodes in sorted(kinds.items()))
