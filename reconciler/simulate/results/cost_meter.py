"""Owner of what machines are paid for, and what they cost an hour.

A machine is paid for from the moment it is launched until both its NodeClaim and its Node are gone. Those of a pool are
priced by the pool's policy, its commitment included; others by the market; what has no price is told.
"""

from collections import Counter

import msgspec

from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.plan.sums.cost import Bill, MachineType, Tariff, machine_of, tariffs
from reconciler.protocol.preconditions import Object
from reconciler.simulate.market import MarketOffering
from reconciler.simulate.objects import Key, ObjectWrite
from reconciler.simulate.results.read_objects import gpus_in, read_node


class _Paid(msgspec.Struct):
    """One machine, and the objects that stand for it."""

    pool: str
    machine: MachineType
    gpus: int
    by: dict[Key, None]


class CostMeter:
    """Told of each write; knows what an hour costs now."""

    def __init__(
        self, desired: Desired, market: tuple[MarketOffering, ...], priced_by: tuple[Desired, ...] = ()
    ) -> None:
        """`priced_by`: policies that say what is paid, whichever are in force; those of the first go before."""
        self._priced_by = priced_by
        self._prices: dict[MachineType, int] = {}
        for each in market:
            price = each.micro_dollars_per_hour
            machine = MachineType(each.instance_type, each.capacity_type)
            self._prices[machine] = max(price, self._prices.get(machine, 0))
        self._paid: dict[str, _Paid] = {}
        self._identity: dict[Key, str] = {}
        self._machines: dict[str, Counter[MachineType]] = {}
        self._bills: dict[str, Bill] = {}
        self._tariffs: dict[str, Tariff] = {}
        self.gpus = 0
        self.bought = 0  # machines, ever
        self.follow(desired)

    def follow(self, desired: Desired) -> None:
        """From now on these policies say what is paid, unless others do all the time."""
        self._tariffs = tariffs(self._priced_by or (desired,))
        for name in sorted({*self._machines, *self._tariffs, *self._bills}):
            self._bill(name)

    def micro_dollars_per_hour(self, pool: str) -> int:
        bill = self._bills.get(pool)
        return bill.micro_dollars_per_hour if bill else 0

    @property
    def pools(self) -> tuple[str, ...]:
        return tuple(sorted(self._bills))

    @property
    def total_per_hour(self) -> int:
        return sum(each.micro_dollars_per_hour for each in self._bills.values())

    @property
    def is_unpriced(self) -> bool:
        return any(each.unpriced for each in self._bills.values())

    def note(self, written: ObjectWrite) -> None:
        kind, key = written.key[0], written.key
        if kind not in {"Node", "NodeClaim"}:
            return
        paid = None if written.after is None else (_of_node if kind == "Node" else _of_claim)(written.after)
        known = self._identity.get(key)
        if known is not None and (paid is None or paid[0] != known):
            self._leave(known, key)
        if paid is not None:
            self._join(paid[0], paid[1], key)

    def _join(self, identity: str, paid: _Paid, key: Key) -> None:
        found = self._paid.get(identity)
        self._identity[key] = identity
        if found is None:
            self._paid[identity] = paid
            paid.by[key] = None
            self.bought += 1
            self._change(paid, 1)
            return
        found.by[key] = None
        if paid.gpus > found.gpus:  # a node that has registered tells more than its claim
            self.gpus += paid.gpus - found.gpus
            found.gpus = paid.gpus

    def _leave(self, identity: str, key: Key) -> None:
        del self._identity[key]
        paid = self._paid[identity]
        del paid.by[key]
        if not paid.by:
            del self._paid[identity]
            self._change(paid, -1)

    def _change(self, paid: _Paid, sign: int) -> None:
        self.gpus += sign * paid.gpus
        machines = self._machines.setdefault(paid.pool, Counter())
        machines[paid.machine] += sign
        if not machines[paid.machine]:
            del machines[paid.machine]
        self._bill(paid.pool)

    def _bill(self, pool: str) -> None:
        machines = self._machines.get(pool, Counter[MachineType]())
        if tariff := self._tariffs.get(pool):
            self._bills[pool] = tariff.bill(machines)
            return
        known = {each: count for each, count in machines.items() if each in self._prices}
        priced = sum(count * self._prices[each] for each, count in known.items())
        self._bills[pool] = Bill(priced, 0, sum(machines.values()) - sum(known.values()))


def _of_node(body: Object) -> tuple[str, _Paid]:
    observed = read_node(body)
    return observed.provider_id, _Paid(observed.pool, observed.machine, observed.gpus, {})


def _of_claim(body: Object) -> tuple[str, _Paid] | None:
    """Nothing while it is not launched."""
    status = body.get("status") or {}
    labels = body["metadata"].get("labels") or {}
    if not status.get("providerID"):
        return None
    capacity = status.get("capacity") or status.get("allocatable") or {}
    pool = labels.get(names.KARPENTER_POOL, "")
    return status["providerID"], _Paid(pool, machine_of(labels), gpus_in(capacity), {})
