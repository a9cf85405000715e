"""Nodes that a pool lacks and that no pod asks for: of its smallest size, and of the nodes that it keeps warm.

A warm node is a free node that is bought ahead. Free are nodes with room for a pod of any size, and machines on their
way, as far as no waiting pod will use them. Nodes are counted as size.py counts them, or a node would be bought that
is too many as soon as it is there. What is bought for the smallest size is free as well. Smart pods that ask for such
nodes are alike: which of the two they were made for makes no difference to which of them are still needed.
"""

import msgspec

from reconciler.fleet.binpack.virtual_nodes import labels_of
from reconciler.plan.capacity.wanted_node import Limited, Unmet, Wanted
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


def shortfall(ground: PoolView, demand: Demand, surplus: int) -> Shortfall:
    """`surplus`: empty nodes that are marked, or will be."""
    wish = ground.wish.spec
    machines = len(ground.arriving) + demand.new_nodes
    lacks_size = wish.min_size - ground.size - machines
    lacks_warm = _lacks_warm(ground, demand, surplus)
    short = max(0, lacks_size - ground.asked)
    warm = max(0, lacks_warm - _unused(ground, demand) - short)
    room = max(0, room_for(ground).nodes - demand.new_nodes - short) if warm else 0
    used = _needed(ground, demand, lacks_size, min(lacks_warm, wish.max_size - ground.size - machines))
    return Shortfall(short, min(warm, room), warm - min(warm, room), used)


def _lacks_warm(ground: PoolView, demand: Demand, surplus: int) -> int:
    """Warm nodes that are neither there nor bought; what smart pods ask for is not looked at."""
    if not ground.wish.spec.warm_nodes:
        return 0
    fleet = ground.site.fleet
    leaving = sum(is_empty(fleet, node) for node in ground.leaving_otherwise)
    free = len(ground.free - demand.taken_nodes) - leaving - surplus - ground.use.closed_nodes
    bought = len(ground.arriving) - demand.taken_machines
    return max(0, ground.wish.spec.warm_nodes - max(0, free) - max(0, bought))


def _unused(ground: PoolView, demand: Demand) -> int:
    """Machines that smart pods ask for and that no waiting pod will use. Bought machines are used first."""
    beyond = max(0, demand.taken_machines - len(ground.arriving))
    return max(0, ground.asked - beyond)


def _needed(ground: PoolView, demand: Demand, lacks_size: int, lacks_warm: int) -> frozenset[str]:
    """Smart pods without pods of their own, no more of them than there are nodes lacking."""
    requests = ground.site.draft.requests.of(ground.pool.name)
    asking = [each.name for each in requests if each.is_open and each.request.why != "demand"]
    unused = [each for each in asking if each not in demand.used]
    needed = max(lacks_size - (len(asking) - len(unused)), lacks_warm, 0)
    return frozenset(unused[:needed])


def at_least(ground: PoolView, nodes: int) -> tuple[Wanted, ...]:
    """One for each that is lacking; nothing while no way to buy may be tried."""
    outlook = ground.outlook
    waits_until = outlook.again_at
    if not nodes or outlook.is_exhausted or (waits_until is not None and waits_until > ground.site.now):
        return ()
    choice = outlook.left[0]
    shape = next(each for each in shapes_of(ground) if each.name == choice.instance_type)
    labels = labels_of(shape, choice.zone, choice.capacity_type)
    return (Wanted(choice, labels, shape.allocatable.get("memory", "0")),) * nodes


def unmet(ground: PoolView, demand: Demand, short: Shortfall) -> tuple[Unmet, ...]:
    """What is lacking, and not asked for now."""
    lacks_nodes = short.nodes > 0 and not at_least(ground, short.nodes)
    if not demand.unmet and not lacks_nodes:
        return ()
    least, warm = (short.min_size, short.warm) if lacks_nodes else (0, 0)
    return (Unmet(ground.pool.name, ground.outlook, demand.unmet, demand.later, least, warm),)


def limited(ground: PoolView, demand: Demand, short: Shortfall) -> tuple[Limited, ...]:
    """What a limit keeps the pool from buying."""
    if not demand.limited and not short.limited:
        return ()
    return (Limited(ground.pool.name, room_for(ground).limit, demand.limited, short.limited),)
