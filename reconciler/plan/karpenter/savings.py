"""What the bill is less by, node by node, once the nodes of a fate are gone or replaced.

A node that is replaced by one of its own sort costs what it did. Where its pool no longer allows its sort, what follows
it is the pool's first choice: the difference is told where both prices are known, and else only that it is not.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.model.planned.consequence import Consequence, Fate, summed
from reconciler.plan.karpenter.survey import Site
from reconciler.plan.sums.cost import Machine, Tariff, machine_of

_SAVES: frozenset[Fate] = frozenset({"scaled", "drained", "removed", "deleted"})


class Saved(msgspec.Struct, frozen=True):
    """By one node."""

    micro_dollars_per_hour: int = 0  # negative is saved
    unpriced: int = 0


_NOTHING = Saved()


class Till:
    """Owner of the machines that are left in a NodePool while its fates are told one after the other."""

    def __init__(self, declared: Declared[GpuPool] | None, machines: Counter[Machine]) -> None:
        self._tariff = Tariff(declared.spec) if declared is not None else None
        self._left = machines
        self._bill = self._tariff.bill(machines) if self._tariff is not None else None

    def saved(self, fate: Fate, machine: Machine | None) -> Saved:
        """By one node of this fate; its machine is then no longer among those that are left."""
        if machine is None:
            return _NOTHING
        if fate in _SAVES:
            return Saved(unpriced=1) if self._tariff is None else self._exchange(self._tariff, machine, None)
        if fate == "replaced" and self._tariff is not None:
            successor = self._tariff.successor(machine)
            return Saved(unpriced=1) if successor is None else self._exchange(self._tariff, machine, successor)
        return _NOTHING

    def _exchange(self, tariff: Tariff, goes: Machine, comes: Machine | None) -> Saved:
        if goes == comes:
            return _NOTHING
        before = self._bill or tariff.bill(self._left)
        self._left[goes] -= 1
        if comes is not None:
            self._left[comes] += 1
        self._bill = after = tariff.bill(self._left)
        return Saved(after.micro_dollars_per_hour - before.micro_dollars_per_hour, before.unpriced - after.unpriced)


def _machines(fleet: Fleet, pool: str) -> dict[str, Machine | None]:
    """Of nodes that belong to the pool by its label, whoever made them."""
    return {node.name: machine_of(node.metadata.labels) for node in fleet.nodes_of(pool)}


def priced_by(
    pools: Mapping[str, Declared[GpuPool]], consequences: Iterable[Consequence], fleet: Fleet, now: Instant
) -> tuple[Consequence, ...]:
    """The same consequences, those for these pools priced by these policies."""
    tills: dict[str, tuple[Till, dict[str, Machine | None]]] = {}
    told = []
    for each in consequences:
        declared = pools.get(each.pool or each.node_pool)
        if declared is None:
            told.append(each)
            continue
        if each.node_pool not in tills:
            site = Site(fleet, each.node_pool, now)
            machines = _machines(fleet, each.node_pool) | {found.name: found.machine for found in site.all()}
            paid_for = Counter(machine for machine in machines.values() if machine is not None)
            tills[each.node_pool] = Till(declared, paid_for), machines
        till, machines = tills[each.node_pool]
        shares = []
        for node, share in zip(each.nodes, each.shares, strict=True):
            saved = till.saved(each.fate, machines.get(node))
            money = {"micro_dollars_per_hour": saved.micro_dollars_per_hour, "unpriced": saved.unpriced}
            shares.append((node, msgspec.structs.replace(share, **money)))
        told.append(summed(each, shares))
    return tuple(told)
