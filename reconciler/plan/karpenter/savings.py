"""What the bill is less by, node by node, once the nodes of a fate are gone or replaced.

A node that is replaced by one of its own sort costs what it did. Where its pool no longer allows its sort, what follows
it is the pool's first choice: the difference is told where both prices are known, and else only that it is not. Reports
price all consequences anew, with those of our own planners and by the prices of a change (impact/pricing.py).
"""

from collections import Counter

from reconciler.model.desired import Declared
from reconciler.model.plan.consequence import Fate
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.plan.sums.cost import MachineType, Tariff, successor
from reconciler.plan.sums.ledger import NOTHING, UNKNOWN, CostChange, CostLedger

_SAVES: frozenset[Fate] = frozenset({"removed", "deleted"})


class Till:
    """Owner of the machines that are left in a NodePool while its fates are told one after the other."""

    def __init__(self, declared: Declared[GpuPool] | None, machines: Counter[MachineType]) -> None:
        self._pool = declared.spec if declared is not None else None
        self._ledger = CostLedger(Tariff(self._pool) if self._pool is not None else None, machines)

    def saved(self, fate: Fate, machine: MachineType | None) -> CostChange:
        """By one node of this fate; its machine is then no longer among those that are left."""
        if machine is None:
            return NOTHING
        if fate in _SAVES:
            return self._ledger.exchange(machine, None)
        if fate == "replaced" and self._pool is not None:
            after = successor(self._pool, machine)
            return self._ledger.exchange(machine, after) if self._ledger.compares(machine, after) else UNKNOWN
        return NOTHING
