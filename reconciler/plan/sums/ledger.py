"""A Ledger: the bill of a pool while its machines go and come one by one, and what each of them changes."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from reconciler.plan.sums.cost import Bill, MachineType, Tariff


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
