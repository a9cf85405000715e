"""Nodes that go together, since the same gangs run on them: a gang is moved once, not node by node.

A node is in one crew at most: what shares a gang with one of them is of it too. Gangs that are on their way already
tie nobody, and nor do nodes that can't go: the others go without them. A crew has no more nodes than may ever be
drained at once, and all are of one policy, as the windows of two may never be open at the same time: the others stay,
and have their turn another day.
"""

from collections.abc import Sequence

import msgspec

from reconciler.plan.capacity.gangs import Gang
from reconciler.plan.drain.context import DrainNode
from reconciler.plan.drain.gangs.members import Members


class GangNodes(msgspec.Struct, frozen=True):
    """Nodes, in the order in which they would be tried, and all gangs that run on any of them."""

    nodes: tuple[DrainNode, ...]
    gangs: tuple[Gang, ...]
    too_many: tuple[DrainNode, ...] = ()  # nodes beyond what may be drained at once
    elsewhere: tuple[DrainNode, ...] = ()  # nodes that another policy drains

    @property
    def most(self) -> int:
        """How many nodes may go together."""
        return _most(self.nodes)


def crews_of(members: Members, order: Sequence[DrainNode]) -> dict[str, GangNodes]:
    """By the name of each node that holds a pod of a gang; alone, where that is on its way already."""
    gang_nodeses: dict[str, GangNodes] = {}
    for at, drain_node in enumerate(order):
        if drain_node.name not in gang_nodeses and drain_node.name in members.on:
            crew = _crew(members, order[at:], drain_node)
            gang_nodeses |= dict.fromkeys([each.name for each in (*crew.nodes, *crew.too_many, *crew.elsewhere)], crew)
    return gang_nodeses


def _crew(members: Members, order: Sequence[DrainNode], first: DrainNode) -> GangNodes:
    gangs, before = _gangs(members, first), frozenset[Gang]()
    while gangs != before:
        before = gangs
        gangs = gangs.union(*(shared for each in order if (shared := _gangs(members, each)) & before))
    tied = tuple(each for each in order if each is first or _gangs(members, each) & gangs)
    nodes = tuple(each for each in tied if each.policy is first.policy)
    most = _most(nodes)
    moving = frozenset[Gang]().union(*(_gangs(members, each) for each in nodes[:most]))
    elsewhere = tuple(each for each in tied if each.policy is not first.policy)
    return GangNodes(nodes[:most], tuple(sorted(moving)), nodes[most:], elsewhere)


def part(members: Members, nodes: tuple[DrainNode, ...]) -> GangNodes:
    """Some of a crew, with the gangs that run on these."""
    return GangNodes(nodes, tuple(sorted(frozenset[Gang]().union(*(_gangs(members, each) for each in nodes)))))


def _most(nodes: Sequence[DrainNode]) -> int:
    """The least that any of their policies allows."""
    specs = [each.policy.spec for each in nodes]
    return max(1, min(min(each.max_drain_parallelism, each.max_scale_down_parallelism) for each in specs))


def _gangs(members: Members, drain_node: DrainNode) -> frozenset[Gang]:
    return frozenset(members.on.get(drain_node.name, ())) - members.on_their_way
