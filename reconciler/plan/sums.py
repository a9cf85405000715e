"""Sums over nodes: utilization and cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.evaluation import Use
from reconciler.model.policy.gpu import GpuPool

# --- Brake on removals: if too many nodes of a pool are not ready, scaling can't repair the pool, and no node is
# removed.

MOST_UNREADY_NODES = 3
MOST_UNREADY_PERCENT = 45


def is_on(nodes: int, unready: int) -> bool:
    """Whether the brake is on. Both limits must be exceeded: a few unready nodes of a small pool are many percent."""
    return unready > MOST_UNREADY_NODES and 100 * unready > MOST_UNREADY_PERCENT * nodes


# --- Hourly cost of a pool's machines.
#
# The committed nodes of a pool are paid for whether they run or not, each at the pool's reserved price, or else at its
# first price. Every further machine is paid for at its own price, by instance type and capacity type. If the pool lists
# `reserved` among its capacity types, only machines labelled reserved run on the commitment, because a machine bought
# on demand does not move into a reservation when another machine leaves the reservation. If the pool does not list
# `reserved`, all machines that are not spot can run on the commitment, the most expensive first. So removing a machine
# saves its price or nothing, and never costs anything.

_RESERVED = "reserved"
_SPOT = "spot"


class MachineType(msgspec.Struct, frozen=True, gc=False, order=True):
    """The attributes of a machine that its price depends on."""

    instance_type: str
    capacity_type: str


class Bill(msgspec.Struct, frozen=True, gc=False):
    """Millionths of a dollar per hour. `committed` is the part that remains without any machine."""

    micro_dollars_per_hour: int
    committed_micro_dollars_per_hour: int
    unpriced: int  # nodes, committed ones included, that are missing from the bill because no price is declared


def micro_dollars_per_hour(pool: Declared[GpuPool], nodes: Sequence[Node]) -> Bill:
    """Bill for these nodes of the pool."""
    return bill(pool.spec, Counter(machine_of(node.metadata.labels) for node in nodes))


def machine_of(labels: Mapping[str, str]) -> MachineType:
    """Machine type from the labels of a node or a NodeClaim."""
    return MachineType(labels.get(names.INSTANCE_TYPE, ""), labels.get(names.CAPACITY_TYPE, "on-demand"))


def bill(pool: GpuPool, machines: Mapping[MachineType, int]) -> Bill:
    """Bill for the machines, counted by type."""
    return Tariff(pool).bill(machines)


class Tariff:
    """Prices of a pool, read from its policy. Immutable."""

    def __init__(self, pool: GpuPool, other: GpuPool | None = None) -> None:
        """`other`: another version of the pool, whose prices apply where the pool declares none."""
        self._pool = pool
        self._price_of = _prices(pool) if other is None else _prices(other) | _prices(pool)
        price = _committed_price(pool)
        self._committed_price = price if price is not None or other is None else _committed_price(other)

    def bill(self, machines: Mapping[MachineType, int]) -> Bill:
        """Bill for the machines, counted by type."""
        pool, price_of = self._pool, self._price_of
        committed = pool.committed_nodes * (self._committed_price or 0)
        unpriced = pool.committed_nodes if self._committed_price is None else 0
        total = committed
        left = pool.committed_nodes
        for machine in _in_order(machines, price_of):
            count = machines[machine]
            if _runs_on_the_commitment(pool, machine):
                covered = min(left, count)
                left -= covered
                count -= covered
            if machine in price_of:
                total += count * price_of[machine]
            else:
                unpriced += count
        return Bill(total, committed, unpriced)

    def has(self, machine: MachineType) -> bool:
        """Whether the price of the machine is known."""
        return machine in self._price_of


def tariffs(policies: Sequence[Desired]) -> dict[str, Tariff]:
    """Tariffs by pool over several sets of policies. The first set that declares a pool decides; the second set
    supplies prices that the first lacks. So the results of two sets of policies are compared with the same prices.
    """
    versions: dict[str, list[GpuPool]] = {}
    for desired in policies:
        for pool in desired.pools:
            versions.setdefault(pool.name, []).append(pool.spec)
    return {name: Tariff(*gpu_pools[:2]) for name, gpu_pools in versions.items()}


def successor(pool: GpuPool, machine: MachineType) -> MachineType:
    """Machine type that replaces a machine: the same instance type and capacity type where the pool still allows each,
    else the first that the pool lists.
    """
    types = [each.name for each in pool.instance_types]
    instance_type, capacity_type = machine.instance_type, machine.capacity_type
    if types and instance_type not in types:
        instance_type = types[0]
    if pool.capacity_types and capacity_type not in pool.capacity_types:
        capacity_type = pool.capacity_types[0]
    return MachineType(instance_type, capacity_type)


def _prices(pool: GpuPool) -> dict[MachineType, int]:
    return {
        MachineType(each.name, capacity_type): money.micro_dollars
        for each in pool.instance_types
        for capacity_type, money in each.price_per_hour.items()
    }


def _in_order(machines: Iterable[MachineType], price_of: Mapping[MachineType, int]) -> list[MachineType]:
    """Most expensive first; machines of unknown price last."""
    return sorted(machines, key=lambda each: (-price_of.get(each, -1), each))


def _runs_on_the_commitment(pool: GpuPool, machine: MachineType) -> bool:
    if _RESERVED in pool.capacity_types:
        return machine.capacity_type == _RESERVED
    return machine.capacity_type != _SPOT


def _committed_price(pool: GpuPool) -> int | None:
    """First reserved price, else the first price of any capacity type. Prices are ordered by instance type, then by
    capacity type.
    """
    wanted = (_RESERVED, *pool.capacity_types, "on-demand", _SPOT)
    prices = [
        dict[str, int]((key, money.micro_dollars) for key, money in each.price_per_hour.items())
        for each in pool.instance_types
    ]
    reserved = (each[_RESERVED] for each in prices if _RESERVED in each)
    any_kind = (each[key] for each in prices for key in wanted if key in each)
    return next(reserved, next(any_kind, None))


# --- Bill of a pool while machines leave and join one by one.


class CostChange(msgspec.Struct, frozen=True):
    """Change of the bill by one node."""

    micro_dollars_per_hour: int = 0  # negative: saved
    unpriced: int = 0  # 1 if the change is unknown


NOTHING = CostChange()
UNKNOWN = CostChange(unpriced=1)


class CostLedger:
    """The remaining machines of a pool and their bill. Mutable. Without a tariff every bill is unknown."""

    def __init__(self, tariff: Tariff | None, machines: Mapping[MachineType, int]) -> None:
        self._tariff, self._left = tariff, Counter(machines)
        self._bill = tariff.bill(self._left) if tariff is not None else None

    @property
    def bill(self) -> Bill:
        """Bill of the remaining machines."""
        return self._bill or Bill(0, 0, self._left.total())

    def copy(self) -> "CostLedger":
        return CostLedger(self._tariff, self._left)

    def compares(self, goes: MachineType | None, comes: MachineType | None) -> bool:
        """Whether the cost change of replacing one machine with another is known."""
        if goes is None or comes is None or goes == comes or self._tariff is None:
            return True
        return self._tariff.has(goes) and self._tariff.has(comes)

    def exchange(self, goes: MachineType | None, comes: MachineType | None) -> CostChange:
        """Replace one machine with another, and return the change of the bill."""
        if goes == comes:
            return NOTHING
        before = self.bill
        if goes is not None:
            self._left[goes] -= 1
        if comes is not None:
            self._left[comes] += 1
        if self._tariff is None:
            return UNKNOWN
        self._bill = after = self._tariff.bill(self._left)
        unpriced = abs(after.unpriced - before.unpriced)
        return CostChange(after.micro_dollars_per_hour - before.micro_dollars_per_hour, unpriced)


# --- Utilization of a pool: its nodes that are not being deleted, and the GPUs in use on them.


def use_of(fleet: Fleet, pool: str, gpus_per_node: int) -> Use:
    """Current utilization of the pool. Tainted nodes count until they are deleted."""
    nodes = [node for node in fleet.nodes_of(pool) if not node.metadata.leaving]
    return Use(
        nodes=len(nodes),
        busy_nodes=sum(is_busy(fleet, node) for node in nodes),
        gpus_used=gpus_in_use(fleet, nodes),
        gpus_total=sum(node.gpus for node in nodes),
        gpus_per_node=gpus_per_node,
    )


def is_busy(fleet: Fleet, node: Node) -> bool:
    """Whether a workload pod runs on the node. DaemonSet and mirror pods do not count, because every node has them."""
    return fleet.occupancy.counting.get(node.name, 0) > 0


def is_empty(fleet: Fleet, node: Node) -> bool:
    """Whether the node has no workload pod and no lent GPU, so that the node could be removed."""
    return not is_busy(fleet, node) and not fleet.lent.get(node.name, 0)


def gpus_in_use(fleet: Fleet, nodes: Sequence[Node]) -> int:
    """Sum over nodes of the larger of the GPUs requested by unfinished pods and the GPUs lent to claims, at most the
    node's GPUs.
    """
    asked, lent = fleet.occupancy.gpus, fleet.lent
    return sum(min(node.gpus, max(asked.get(node.name, 0), lent.get(node.name, 0))) for node in nodes)
