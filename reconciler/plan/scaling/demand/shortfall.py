"""Nodes that a pool lacks and that no pod asks for: of its smallest size, and of the nodes that it keeps warm.

A warm node is a free node that is bought ahead. Free are nodes with room for a pod of any size, and machines on their
way, as far as no waiting pod will use them. Nodes are counted as size.py counts them, or a node would be bought that
is too many as soon as it is there. What is bought for the smallest size is free as well. Smart pods that ask for such
nodes are alike: which of the two they were made for makes no difference to which of them are still needed.
"""

import msgspec

from reconciler.fleet.binpack.virtual_nodes import labels_of
from reconciler.plan.capacity.wanted_node import Limited, Unmet, WantedNode
from reconciler.plan.scaling.demand.assignment import Demand
from reconciler.plan.scaling.demand.room import room_for
from reconciler.plan.scaling.demand.shapes import shapes_of
from reconciler.plan.scaling.pool_view import PoolView
from reconciler.plan.sums.usage import is_empty


class Shortfall(msgspec.Struct, frozen=True):
    """Of one pool."""

    min_size: int = 0
    warm: int = 0  # beside those
    limited: int = 0  # warm nodes that are wanted as well, and that no limit leaves room for
    used: frozenset[str] = frozenset()  # smart pods that ask for such nodes, and are needed still

    @property
    def nodes(self) -> int:
        return self.min_size + self.warm


def shortfall(pool_view: PoolView, demand: Demand, surplus: int) -> Shortfall:
    """`surplus`: empty nodes that are marked, or will be."""
    wish = pool_view.wish.spec
    machines = len(pool_view.arriving) + demand.new_nodes
    lacks_size = wish.min_size - pool_view.size - machines
    lacks_warm = _lacks_warm(pool_view, demand, surplus)
    short = max(0, lacks_size - pool_view.requested_machines)
    warm = max(0, lacks_warm - _unused(pool_view, demand) - short)
    room = max(0, room_for(pool_view).nodes - demand.new_nodes - short) if warm else 0
    used = _needed(pool_view, demand, lacks_size, min(lacks_warm, wish.max_size - pool_view.size - machines))
    return Shortfall(short, min(warm, room), warm - min(warm, room), used)


def _lacks_warm(pool_view: PoolView, demand: Demand, surplus: int) -> int:
    """Warm nodes that are neither there nor bought; what smart pods ask for is not looked at."""
    if not pool_view.wish.spec.warm_nodes:
        return 0
    fleet = pool_view.context.fleet
    leaving = sum(is_empty(fleet, node) for node in pool_view.leaving_otherwise)
    free = len(pool_view.free - demand.taken_nodes) - leaving - surplus - pool_view.use.closed_nodes
    bought = len(pool_view.arriving) - demand.taken_machines
    return max(0, pool_view.wish.spec.warm_nodes - max(0, free) - max(0, bought))


def _unused(pool_view: PoolView, demand: Demand) -> int:
    """Machines that smart pods ask for and that no waiting pod will use. Bought machines are used first."""
    beyond = max(0, demand.taken_machines - len(pool_view.arriving))
    return max(0, pool_view.requested_machines - beyond)


def _needed(pool_view: PoolView, demand: Demand, lacks_size: int, lacks_warm: int) -> frozenset[str]:
    """Smart pods without pods of their own, no more of them than there are nodes lacking."""
    requests = pool_view.context.draft.requests.of(pool_view.pool.name)
    asking = [each.name for each in requests if each.is_open and each.request.why != "demand"]
    unused = [each for each in asking if each not in demand.used]
    needed = max(lacks_size - (len(asking) - len(unused)), lacks_warm, 0)
    return frozenset(unused[:needed])


def at_least(pool_view: PoolView, nodes: int) -> tuple[WantedNode, ...]:
    """One for each that is lacking; nothing while no way to buy may be tried."""
    outlook = pool_view.outlook
    waits_until = outlook.again_at
    if not nodes or outlook.is_exhausted or (waits_until is not None and waits_until > pool_view.context.now):
        return ()
    choice = outlook.left[0]
    shape = next(each for each in shapes_of(pool_view) if each.name == choice.instance_type)
    labels = labels_of(shape, choice.zone, choice.capacity_type)
    return (WantedNode(choice, labels, shape.allocatable.get("memory", "0")),) * nodes


def unmet(pool_view: PoolView, demand: Demand, short: Shortfall) -> tuple[Unmet, ...]:
    """What is lacking, and not asked for now."""
    lacks_nodes = short.nodes > 0 and not at_least(pool_view, short.nodes)
    if not demand.unmet and not lacks_nodes:
        return ()
    least, warm = (short.min_size, short.warm) if lacks_nodes else (0, 0)
    return (Unmet(pool_view.pool.name, pool_view.outlook, demand.unmet, demand.later, least, warm),)


def limited(pool_view: PoolView, demand: Demand, short: Shortfall) -> tuple[Limited, ...]:
    """What a limit keeps the pool from buying."""
    if not demand.limited and not short.limited:
        return ()
    return (Limited(pool_view.pool.name, room_for(pool_view).limit, demand.limited, short.limited),)
