"""What the machines of a pool cost an hour.

The committed nodes of a pool are paid for whether they run or not, each at the pool's reserved price, or else at its
first price. Every further machine is paid for at its own price, by instance type and capacity type. Which machines run
on the commitment: where the pool lists `reserved` among its capacity types, those that are labelled reserved and no
others, since a machine bought on demand does not move into a reservation when another leaves it; where it does not, any
that is not spot, the dearest first. So to remove a machine saves its price or nothing, and never costs anything.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.kinds.gpu_pool import GpuPool

_RESERVED = "reserved"
_SPOT = "spot"


class Machine(msgspec.Struct, frozen=True, gc=False, order=True):
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


def machine_of(labels: Mapping[str, str]) -> Machine:
    """By the labels of a node or a NodeClaim."""
    return Machine(labels.get(names.INSTANCE_TYPE, ""), labels.get(names.CAPACITY_TYPE, "on-demand"))


def bill(pool: GpuPool, machines: Mapping[Machine, int]) -> Bill:
    """The bill for so many machines of each sort."""
    return Tariff(pool).bill(machines)


class Tariff:
    """What a pool pays, taken out of its policy once; never changed once it is made."""

    def __init__(self, pool: GpuPool) -> None:
        self._pool = pool
        self._price_of = {
            Machine(each.name, capacity_type): money.micro_dollars
            for each in pool.instance_types
            for capacity_type, money in each.price_per_hour.items()
        }
        self._committed_price = _committed_price(pool)
        self._first = Machine(pool.instance_types[0].name, pool.capacity_types[0]) if pool.instance_types else None

    def bill(self, machines: Mapping[Machine, int]) -> Bill:
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

    def successor(self, machine: Machine) -> Machine | None:
        """What is bought in its place: the same where the pool still allows it, else its first choice.

        Nothing where the price of either is not known.
        """
        pool = self._pool
        if machine.capacity_type in pool.capacity_types and any(
            each.name == machine.instance_type for each in pool.instance_types
        ):
            return machine
        return self._first if {machine, self._first} <= self._price_of.keys() else None


def _in_order(machines: Iterable[Machine], price_of: Mapping[Machine, int]) -> list[Machine]:
    """Dearest first; those of unknown price last."""
    return sorted(machines, key=lambda each: (-price_of.get(each, -1), each))


def _runs_on_the_commitment(pool: GpuPool, machine: Machine) -> bool:
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
