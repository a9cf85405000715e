"""Cost difference of each consequence, node by node, and bills before and after, with one price list.

Theory of operation. The cost of a change compares the same nodes before and after it. So the current fleet, the
fleet without the change and the fleet with it are billed with the same prices and the same commitment: those of the
change, and those of its base for machines that only the base prices. An edit of prices or of committedNodes moves no
node, and changes no cost here; its effect on the current fleet is reported separately (`Bills.repriced`).

The ledger of each pool goes through three states. It begins with the current fleet; consequences in both plans lead
to their common state. Consequences only in the base lead to the fleet without the change. From there, undoing the
consequences that the change spares, and applying those that it causes, leads to the fleet with the change. The cost
of a node is the difference of its step. So the costs always add up to the difference of two bills, whatever runs on
a commitment and in which order:

    without - now  = consequences in both + consequences only in the base
    with - without = consequences caused by the change - consequences spared by it

A node with another fate in the base is priced by the difference of its two fates.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.model.plan.consequence import LEAVES, Consequence, MachineOrder, Share, summed
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.blame import blame, instead_of, pool_of, with_consequences
from reconciler.plan.karpenter.node_fate import NodePoolSurvey
from reconciler.plan.sums import (
    NOTHING,
    UNKNOWN,
    CostChange,
    CostLedger,
    MachineType,
    Tariff,
    machine_of,
    successor,
    tariffs,
)

_Tariffs = Mapping[str, Tariff]  # by pool


class Bills(msgspec.Struct, frozen=True):
    """Bills of one pool, in micro dollars per hour."""

    now: int = 0
    without: int = 0  # after all that happens without the change
    with_change: int = 0  # after the change too
    committed: int = 0  # part of each bill that is paid whether nodes run or not
    repriced: int = 0  # additional cost of the current fleet with these prices compared with those of the base
    unpriced: int = 0  # nodes without a known price, in none of the bills


class Priced(msgspec.Struct, frozen=True):
    """Two plans with priced consequences, and the bill of each pool that has nodes or is declared."""

    scene: PlanningResult
    base: PlanningResult | None
    bills: Mapping[str, Bills]


def priced(scene: PlanningResult, base: PlanningResult | None) -> Priced:
    """`scene` and `base` include all their consequences."""
    blamed = blame(scene.plan, base.plan if base else None)
    own, before = scene.inputs.desired, base.inputs.desired if base else scene.inputs.desired
    prices = tariffs((own, before)), tariffs((before, own))
    books = {name: _Book(scene, base, name, prices) for name in _names(scene, base)}
    with_own, with_base = _Money(), _Money()
    for each in blamed.without:
        books[pool_of(each)].anyway(each, (with_own, with_base))
    instead = list(instead_of(blamed.causes, base.plan if base else None))
    for each in (*instead, *blamed.spared):
        books[pool_of(each)].without(each, with_base)
    without = {name: book.ledger.bill for name, book in books.items()}
    for each in reversed(blamed.spared):
        books[pool_of(each)].spare(each)
    exchanged = tuple(each for _, book in sorted(books.items()) for each in book.exchanged())
    for each in blamed.causes:
        books[pool_of(each)].add_cause(each, with_own)
    for each in (*blamed.without, *blamed.causes, *blamed.spared):
        books[pool_of(each)].scheduled(each, (with_own, with_base))
    bills = {name: book.bills(without[name].micro_dollars_per_hour) for name, book in books.items()}
    return Priced(with_own.put_into(scene, exchanged), with_base.put_into(base) if base else None, bills)


def _names(scene: PlanningResult, base: PlanningResult | None) -> set[str]:
    both = [each for each in (scene, base) if each is not None]
    declared = {pool.name for each in both for pool in each.inputs.desired.pools}
    return declared | {pool_of(one) for each in both for one in each.plan.consequences}


class _Money:
    """Cost differences of a plan's nodes, by fate."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], tuple[CostChange, MachineOrder | None]] = {}

    def note(self, consequence: Consequence, node: str, change: CostChange, order: MachineOrder | None = None) -> None:
        self._found[consequence.node_pool, consequence.fate, node] = change, order

    def put_into(self, scene: PlanningResult, more: Iterable[Consequence] = ()) -> PlanningResult:
        """The plan with exactly these costs."""
        consequences = tuple(each for one in scene.plan.consequences for each in self._priced(one))
        return with_consequences(scene, (*consequences, *more))

    def _priced(self, consequence: Consequence) -> Iterator[Consequence]:
        """Splits the consequence by replacement machine, if that differs from the old one."""
        groups: dict[MachineOrder | None, list[tuple[str, Share]]] = {}
        for node, share in zip(consequence.nodes, consequence.shares, strict=True):
            key = consequence.node_pool, consequence.fate, node
            change, order = self._found.get(key, (NOTHING, None))
            groups.setdefault(order, []).append((node, _paying(share, change)))
        for order, shared in sorted(groups.items(), key=lambda each: each[1][0][0]):
            yield summed(msgspec.structs.replace(consequence, order=order or consequence.order), shared)


def _paying(share: Share, change: CostChange) -> Share:
    money, unpriced = change.micro_dollars_per_hour, change.unpriced
    return msgspec.structs.replace(share, micro_dollars_per_hour=money, unpriced=unpriced)


class _Book:
    """Ledger of one pool, from the current fleet to the fleet with the change."""

    def __init__(
        self, scene: PlanningResult, base: PlanningResult | None, pool: str, prices: tuple[_Tariffs, _Tariffs]
    ) -> None:
        """`prices`: with those of the change first, and with those of the base first."""
        self._pool = pool
        own, before = scene.inputs.desired.pool(pool), base.inputs.desired.pool(pool) if base else None
        specs = [declared.spec if declared is not None else None for declared in (own or before, before or own)]
        self._own, self._before = specs
        self._machines = machines_of(scene, pool)
        self._there: dict[str, MachineType | None] = dict(self._machines)  # as in the ledger
        # Different replacements for nodes that are replaced in any case.
        self._others: list[tuple[str, Share, MachineType]] = []
        self.ledger = CostLedger(prices[0].get(pool), Counter(self._machines.values()))
        self._now = self.ledger.bill
        by_base = CostLedger(prices[1].get(pool), Counter(self._machines.values()))
        self._by_base = by_base.bill.micro_dollars_per_hour

    def bills(self, without: int) -> Bills:
        """`without` is the bill of the fleet without the change."""
        now = self._now
        return Bills(
            now.micro_dollars_per_hour,
            without,
            self.ledger.bill.micro_dollars_per_hour,
            now.committed_micro_dollars_per_hour,
            now.micro_dollars_per_hour - self._by_base,
            now.unpriced,
        )

    def anyway(self, consequence: Consequence, monies: Iterable[_Money]) -> None:
        """Applies a consequence in both plans."""
        for node, share in _shares(consequence):
            after = self._end(consequence, node, share, self._before)
            other = self._end(consequence, node, share, self._own)
            if after != other and other is not None:
                self._others.append((node, share, other))
            change, order = self._move(node, after), self._order(consequence, node, after)
            for money in monies:
                money.note(consequence, node, change, order)

    def without(self, consequence: Consequence, money: _Money) -> None:
        """Applies a consequence only in the base."""
        self._apply(consequence, self._before, money)

    def spare(self, consequence: Consequence) -> None:
        """Undoes a consequence of the base, last node first."""
        for node, _ in reversed(_shares(consequence)):
            self._move(node, self._machines.get(node))

    def add_cause(self, consequence: Consequence, money: _Money) -> None:
        """Applies a consequence of the change, starting from the node's fate in the base."""
        self._apply(consequence, self._own, money)

    def _apply(self, consequence: Consequence, spec: GpuPool | None, money: _Money) -> None:
        for node, share in _shares(consequence):
            after = self._end(consequence, node, share, spec)
            money.note(consequence, node, self._move(node, after), self._order(consequence, node, after))

    def exchanged(self) -> Iterator[Consequence]:
        """Nodes that are replaced in any case, with different machines under the change."""
        groups: dict[MachineOrder, list[tuple[str, Share]]] = {}
        for node, share, other in self._others:
            order = MachineOrder(other.instance_type, other.capacity_type)
            only = Share(share.gpus, 0, 0, 0, 0, ())  # its pods move for another reason
            groups.setdefault(order, []).append((node, _paying(only, self._move(node, other))))
        for order, shared in sorted(groups.items()):
            like = Consequence(self._pool, self._pool, "change", "exchanged", (), 0, 0, 0, 0, order=order)
            yield summed(like, shared)

    def scheduled(self, consequence: Consequence, monies: Iterable[_Money]) -> None:
        """Priced in addition to everything else, and in no bill."""
        if consequence.fate != "scheduled" or consequence.order is None:
            return
        ledger, order = self.ledger.copy(), consequence.order
        for node, _ in _shares(consequence):
            change = ledger.exchange(None, MachineType(order.instance_type, order.capacity_type))
            for money in monies:
                money.note(consequence, node, change)

    def _move(self, node: str, after: MachineType | None) -> CostChange:
        """If the cost of the replacement is unknown, the bill does not change, since only equal nodes are compared."""
        before = self._there.get(node)
        if not self.ledger.compares(before, after):
            return UNKNOWN
        self._there[node] = after
        return self.ledger.exchange(before, after)

    def _end(self, consequence: Consequence, node: str, share: Share, spec: GpuPool | None) -> MachineType | None:
        """The machine that is paid for in the end."""
        order, before = consequence.order, self._machines.get(node)
        if consequence.fate in LEAVES:
            return None
        if consequence.fate == "replaced" and before is not None and spec is not None:
            return successor(spec, before)
        if consequence.fate == "bought" and order is not None and not share.is_paid_for:
            return MachineType(order.instance_type, order.capacity_type)
        return before

    def _order(self, consequence: Consequence, node: str, after: MachineType | None) -> MachineOrder | None:
        """The replacement, if it differs."""
        if consequence.fate != "replaced" or after is None or after == self._machines.get(node):
            return None
        return MachineOrder(after.instance_type, after.capacity_type)


def _shares(consequence: Consequence) -> list[tuple[str, Share]]:
    return list(zip(consequence.nodes, consequence.shares, strict=True))


def machines_of(scene: PlanningResult, pool: str) -> dict[str, MachineType]:
    """Machines paid for now, by node name; without a node, by NodeClaim name. The label decides the pool of a node,
    whoever created it."""
    machine_types = {node.name: machine_of(node.metadata.labels) for node in scene.fleet.nodes_of(pool)}
    for each in NodePoolSurvey(scene.fleet, pool, scene.inputs.now).all():
        if each.machine is not None:
            machine_types[each.name] = each.machine
    return machine_types
