"""Nodes that a pool lacks of its smallest size: in which way they are asked for, and which requests still count."""

from reconciler.fleet.packing.looks import labels_of
from reconciler.plan.requests.wanted import Unmet, Wanted
from reconciler.plan.scaling.demand.serving import Demand
from reconciler.plan.scaling.demand.shapes import shapes_of
from reconciler.plan.scaling.ground import Ground


def at_least(ground: Ground, nodes: int) -> tuple[Wanted, ...]:
    """One for each that is lacking; nothing while no way to buy may be tried."""
    outlook = ground.outlook
    waits_until = outlook.again_at
    if not nodes or outlook.is_exhausted or (waits_until is not None and waits_until > ground.site.now):
        return ()
    choice = outlook.left[0]
    shape = next(each for each in shapes_of(ground) if each.name == choice.instance_type)
    labels = labels_of(shape, choice.zone, choice.capacity_type)
    return (Wanted(choice, labels, shape.allocatable.get("memory", "0")),) * nodes


def unmet(ground: Ground, demand: Demand, missing: int) -> tuple[Unmet, ...]:
    """What is lacking, and not asked for now."""
    nodes = missing - demand.new_nodes
    lacks_least = nodes > 0 and not at_least(ground, nodes)
    if not demand.unmet and not lacks_least:
        return ()
    return (Unmet(ground.pool.name, ground.outlook, demand.unmet, nodes if lacks_least else 0),)


def used_for_least(ground: Ground, demand: Demand) -> frozenset[str]:
    """Smart pods that ask for what is lacking of the smallest size: no more of them than that."""
    needed = ground.wish.spec.min_size - ground.size - len(ground.arriving) - demand.new_nodes
    requests = ground.site.draft.requests.of(ground.pool.name)
    asking = [each.name for each in requests if each.is_open and each.request.why == "minSize"]
    return frozenset(asking[: max(0, needed)])
