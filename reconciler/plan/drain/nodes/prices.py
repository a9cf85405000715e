"""Owner of what machines cost by policy, looked up once for those that are alike."""

from collections.abc import Mapping

from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.kinds.gpu_pool import GpuPool


class Prices:
    """Of one plan."""

    def __init__(self, pools: Mapping[str, Declared[GpuPool]]) -> None:
        self._pools = pools
        self._known: dict[tuple[str, str, str], int] = {}

    def of(self, node: Node) -> int:
        """Millionths of a dollar an hour; 0 where the policy does not say, or the machine is paid for all the same."""
        sort = node.pool, node.instance_type, node.capacity_type
        found = self._known.get(sort)
        if found is None:
            found = self._known[sort] = _price(self._pools[node.pool].spec, node)
        return found


def _price(pool: GpuPool, node: Node) -> int:
    if node.capacity_type == "reserved":
        return 0
    found = (
        money.micro_dollars
        for each in pool.instance_types
        if each.name == node.instance_type
        for capacity_type, money in each.price_per_hour.items()
        if capacity_type == node.capacity_type
    )
    return next(found, 0)
