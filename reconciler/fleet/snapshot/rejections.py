"""Refusals of nodes for a pod, counted by predicate and kind of node."""

from collections.abc import Mapping

import msgspec


class NodesOfKind(msgspec.Struct, frozen=True, gc=False):
    """Number of nodes of a pool and instance type."""

    kind: str
    nodes: int


class RefusingPredicate(msgspec.Struct, frozen=True, gc=False):
    """The nodes that one predicate refuses."""

    predicate: str
    kinds: tuple[NodesOfKind, ...]


class Rejections(msgspec.Struct, frozen=True, gc=False):
    """Why no node accepts a pod."""

    by: tuple[RefusingPredicate, ...] = ()  # in the order of predicates
    free: tuple[NodesOfKind, ...] = ()  # nodes that no predicate refuses: the pod fits there alone

    @property
    def totals(self) -> dict[str, int]:
        """Total nodes by predicate name, in the order of predicates."""
        return {each.predicate: sum(kind.nodes for kind in each.kinds) for each in self.by}


def ruled_out(by: Mapping[str, Mapping[str, int]], free: Mapping[str, int]) -> Rejections:
    """`by`: predicate name -> kind of node -> number of nodes."""
    return Rejections(tuple(RefusingPredicate(name, of_kinds(kinds)) for name, kinds in by.items()), of_kinds(free))


def of_kinds(kinds: Mapping[str, int]) -> tuple[NodesOfKind, ...]:
    """Sorted by name."""
    return tuple(NodesOfKind(kind, nodes) for kind, nodes in sorted(kinds.items()))
