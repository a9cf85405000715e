"""How many more nodes a pool may have: by the provisioner's largest size, and by the limits of the pool.

What a limit on cpu, memory or GPUs leaves is counted in nodes of the largest sort that the pool has or declares.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.plan.capacity_limit import CapacityLimit
from reconciler.model.resource_quantity import amount_offered
from reconciler.plan.scaling.pool_view import PoolView

_MILLI = 1_000_000  # billionths


class PoolHeadroom(msgspec.Struct, frozen=True, gc=False):
    """So many, and what allows no more."""

    nodes: int
    limit: CapacityLimit


def room_for(pool_view: PoolView) -> PoolHeadroom:
    """The least that any of them leaves: of several, the first."""
    return min(_rooms(pool_view), key=lambda room: room.nodes)


def _rooms(pool_view: PoolView) -> Iterator[PoolHeadroom]:
    there = pool_view.size + len(pool_view.machines) + pool_view.requested_machines
    most = pool_view.wish.spec.max_size
    for resource, amount in sorted(pool_view.pool.spec.limits.items()):
        limit = CapacityLimit("limits", pool_view.pool.name, resource, str(amount))
        if resource == "nodes":
            yield PoolHeadroom(max(0, amount.milli // 1000 - there), limit)
        elif largest := _largest(pool_view, resource):
            yield PoolHeadroom(max(0, (amount.milli - _used(pool_view, resource)) // largest), limit)
    yield PoolHeadroom(max(0, most - there), CapacityLimit("maxSize", pool_view.wish.name, amount=str(most)))


def _used(pool_view: PoolView, resource: str) -> int:
    """In thousandths, by nodes and by machines without one."""
    has = [node.status.capacity for node in pool_view.nodes] + [claim.status.capacity for claim in pool_view.machines]
    return sum(_milli(each.get(resource, "0")) for each in has)


def _largest(pool_view: PoolView, resource: str) -> int:
    """The most that one node has of it, in thousandths; 0 where that is not known."""
    pool = pool_view.pool.spec
    found = [_milli(node.status.capacity.get(resource, "0")) for node in pool_view.nodes]
    found += [each.capacity[resource].milli for each in pool.instance_types if resource in each.capacity]
    if resource == names.NVIDIA_GPU:
        found.append(1000 * pool.devices.count)
    return max(found, default=0)


def _milli(written: str) -> int:
    return amount_offered(written) // _MILLI
