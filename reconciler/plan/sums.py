"""Sums over nodes: how they are used, and what they cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.evaluation import Use
from reconciler.model.policy.gpu import GpuPool

# --- The brake: where much of a pool is unready something is wrong that no scaling can mend, and nothing is taken away.

MOST_UNREADY_NODES = 3
MOST_UNREADY_PERCENT = 45


def is_on(nodes: int, unready: int) -> bool:
    """More than both: a small pool may have few unready nodes that are many of it."""
    return unready > MOST_UNREADY_NODES and 100 * unready > MOST_UNREADY_PERCENT * nodes


# --- What the machines of a pool cost an hour.
#
# The committed nodes of a pool are paid for whether they run or not, each at the pool's reserved price, or else at its
# first price. Every further machine is paid for at its own price, by instance type and capacity type. Which machines
# run on the commitment: where the pool lists `reserved` among its capacity types, those that are labelled reserved and
# no others, since a machine bought on demand does not move into a reservation when another leaves it; where it does
# not, any that is not spot, the dearest first. So to remove a machine saves its price or nothing, and never costs
# anything.

_RESERVED = "reserved"
_SPOT = "spot"


class MachineType(msgspec.Struct, frozen=True, gc=False, order=True):
    """What a price depends on."""

    instance_type: str
    capacity_type: str


class Bill(msgspec.Struct, frozen=True, gc=False):
    """Dollars an hour, in millionths; `committed` is the part that stays when all machines are gone."""

    micro_dollars_per_hour: int
    committed_micro_dollars_per_hour: int
    unpriced: int  # nodes, committed ones included, that are not in the bill since their price is not declared


def micro_dollars_per_hour(pool: Declared[GpuPool], nodes: Sequence[Node]) -> Bill:
    """The bill for these nodes of the pool."""
    return bill(pool.spec, Counter(machine_of(node.metadata.labels) for node in nodes))


def machine_of(labels: Mapping[str, str]) -> MachineType:
    """By the labels of a node or a NodeClaim."""
    return MachineType(labels.get(names.INSTANCE_TYPE, ""), labels.get(names.CAPACITY_TYPE, "on-demand"))


def bill(pool: GpuPool, machines: Mapping[MachineType, int]) -> Bill:
    """The bill for so many machines of each sort."""
    return Tariff(pool).bill(machines)


class Tariff:
    """What a pool pays, taken out of its policy once; never changed once it is made."""

    def __init__(self, pool: GpuPool, other: GpuPool | None = None) -> None:
        """`other`: another version of the pool, whose prices hold where the pool declares none."""
        self._pool = pool
        self._price_of = _prices(pool) if other is None else _prices(other) | _prices(pool)
        price = _committed_price(pool)
        self._committed_price = price if price is not None or other is None else _committed_price(other)

    def bill(self, machines: Mapping[MachineType, int]) -> Bill:
        """For so many machines of each sort."""
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
        """Whether its price is known."""
        return machine in self._price_of


def tariffs(policies: Sequence[Desired]) -> dict[str, Tariff]:
    """By pool, over all of these policies: each pool by the first that declare it, and by the prices of the second
    where the first have none. So what two sets of policies lead to is compared by the same prices."""
    versions: dict[str, list[GpuPool]] = {}
    for desired in policies:
        for pool in desired.pools:
            versions.setdefault(pool.name, []).append(pool.spec)
    return {name: Tariff(*gpu_pools[:2]) for name, gpu_pools in versions.items()}


def successor(pool: GpuPool, machine: MachineType) -> MachineType:
    """What is bought in place of a machine: one of its instance type and of its capacity type, of each as far as the
    pool still allows it, else of the pool's first choice."""
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
    """Dearest first; those of unknown price last."""
    return sorted(machines, key=lambda each: (-price_of.get(each, -1), each))


def _runs_on_the_commitment(pool: GpuPool, machine: MachineType) -> bool:
    if _RESERVED in pool.capacity_types:
        return machine.capacity_type == _RESERVED
    return machine.capacity_type != _SPOT


def _committed_price(pool: GpuPool) -> int | None:
    """The first reserved price, else the first price of any kind; first by instance type, then by capacity type."""
    wanted = (_RESERVED, *pool.capacity_types, "on-demand", _SPOT)
    prices = [
        dict[str, int]((key, money.micro_dollars) for key, money in each.price_per_hour.items())
        for each in pool.instance_types
    ]
    reserved = (each[_RESERVED] for each in prices if _RESERVED in each)
    any_kind = (each[key] for each in prices for key in wanted if key in each)
    return next(reserved, next(any_kind, None))


# --- A Ledger: the bill of a pool while its machines go and come one by one, and what each of them changes.


class CostChange(msgspec.Struct, frozen=True):
    """By one node."""

    micro_dollars_per_hour: int = 0  # negative is saved
    unpriced: int = 0  # 1 where that is not known


NOTHING = CostChange()
UNKNOWN = CostChange(unpriced=1)


class CostLedger:
    """Owner of the machines that are left. Without a tariff nothing is known of any bill."""

    def __init__(self, tariff: Tariff | None, machines: Mapping[MachineType, int]) -> None:
        self._tariff, self._left = tariff, Counter(machines)
        self._bill = tariff.bill(self._left) if tariff is not None else None

    @property
    def bill(self) -> Bill:
        """Of the machines that are left."""
        return self._bill or Bill(0, 0, self._left.total())

    def copy(self) -> "CostLedger":
        return CostLedger(self._tariff, self._left)

    def compares(self, goes: MachineType | None, comes: MachineType | None) -> bool:
        """Whether it is known what it changes that one machine follows another."""
        if goes is None or comes is None or goes == comes or self._tariff is None:
            return True
        return self._tariff.has(goes) and self._tariff.has(comes)

    def exchange(self, goes: MachineType | None, comes: MachineType | None) -> CostChange:
        """What the bill changes by."""
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


# --- How a pool is used: its nodes that are not being deleted, and what of their GPUs is asked for.


def use_of(fleet: Fleet, pool: str, gpus_per_node: int) -> Use:
    """The pool as it stands; tainted nodes are part of it until they are deleted."""
    nodes = [node for node in fleet.nodes_of(pool) if not node.metadata.leaving]
    return Use(
        nodes=len(nodes),
        busy_nodes=sum(is_busy(fleet, node) for node in nodes),
        gpus_used=gpus_in_use(fleet, nodes),
        gpus_total=sum(node.gpus for node in nodes),
        gpus_per_node=gpus_per_node,
    )


def is_busy(fleet: Fleet, node: Node) -> bool:
    """Whether a pod on it counts: DaemonSet and mirror pods come with every node."""
    return fleet.occupancy.counting.get(node.name, 0) > 0


def is_empty(fleet: Fleet, node: Node) -> bool:
    """Whether it could go: no pod on it counts, and none of its GPUs is lent."""
    return not is_busy(fleet, node) and not fleet.lent.get(node.name, 0)


def gpus_in_use(fleet: Fleet, nodes: Sequence[Node]) -> int:
    """On each node the larger of what unfinished pods ask for and what is lent to claims; at most what it has."""
    asked, lent = fleet.occupancy.gpus, fleet.lent
    return sum(min(node.gpus, max(asked.get(node.name, 0), lent.get(node.name, 0))) for node in nodes)
