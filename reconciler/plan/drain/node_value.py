"""Value of a node to its cluster: how much of it is used, what deleting it saves, and what work would be lost."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY
from reconciler.fleet.snapshot.row_indexes import PerRow
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.graceful_eviction import moment_of
from reconciler.plan.sums import MachineType, Tariff, machine_of

# --- What it saves to let nodes go, and what work is lost by it: where only some of several can go, the best go first.
#
# Theory of operation. Saved is, an hour, by what the bill of the pools is lower without the nodes (plan/sums.py): a
# machine saves its own price while the pool has more of them than are committed, and nothing after that. What is
# reserved saves nothing: it is paid for all the same. Lost is the work of all pods that are moved, in GPU-milliseconds:
# their GPUs times how long ago they saved it last (gpu.scheduling/checkpointed-at), or began. On a node that is not
# ready nothing is lost that is not lost already.
#
# What a set of nodes saves has diminishing returns, pool by pool, and the limits on how many go (of a pool, of a
# policy, of all) are nested in each other. So to take the node that saves most beside those taken before, and of
# several the one that loses least, again and again, comes to a set that no other of as many nodes betters: none saves
# more, and none that saves as much loses less. With clusterMin, or with nodes that go together, that holds for each
# that waits and each that goes: to exchange the two would better nothing. Integers and fractions of them, nothing is
# rounded.

_RESERVED = "reserved"

Key = tuple[int, int]
Sort = tuple[str, MachineType]  # of a pool
Work = tuple[int, Instant]  # GPUs of a pod, and when it saved its work last


class MachineSavings:
    """Owner of which machines are left of each pool, while nodes are taken off in thought."""

    def __init__(self, context: DrainContext) -> None:
        self._context = context
        self.taken = 0  # nodes, so far
        self._tariffs: dict[str, Tariff] = {}
        self._left: dict[str, Counter[MachineType]] = {}
        self._saved: dict[Sort, int] = {}  # by one machine more
        self._stakes, self._row_of = context.fleet.snapshot.part(Stakes), context.fleet.snapshot.rows.row_of

    def key(self, drain_node: DrainNode) -> Key:
        """Of one node that goes alone; the least is the best."""
        stake = self._stake(drain_node)
        return -self._saved_by_one((drain_node.pool, stake.machine)), self._lost_with(drain_node, stake)

    def sort(self, drain_node: DrainNode) -> Sort:
        """All of one save the same, and do so after each that goes."""
        return drain_node.pool, self._stake(drain_node).machine

    def saved(self, nodes: Sequence[DrainNode]) -> Fraction | int:
        """By each, in millionths of a dollar an hour, beside what was taken before."""
        if len(nodes) == 1:
            return self._saved_by_one(self.sort(nodes[0]))
        found = 0
        for each in nodes:
            found += self._saved_by_one(self.sort(each))
            self._move(each, -1)
        for each in nodes:
            self._move(each, 1)
        return Fraction(found, len(nodes))

    def lost(self, nodes: Sequence[DrainNode], pods: Sequence[Pod] = ()) -> Fraction | int:
        """With each, in GPU-milliseconds; `pods`: what moves with them from other nodes."""
        if len(nodes) == 1 and not pods:
            return self._lost_with(nodes[0], self._stake(nodes[0]))
        gpus_of = self._context.fleet.gpu_requests.of
        elsewhere = sum([_lost(each, self._context.now) for each in _works((gpus_of(pod), pod) for pod in pods)])
        return Fraction(sum([self._lost_with(each, self._stake(each)) for each in nodes]) + elsewhere, len(nodes))

    def take(self, nodes: Iterable[DrainNode]) -> None:
        """They go."""
        for each in nodes:
            self._move(each, -1)
            self.taken += 1

    def _stake(self, drain_node: DrainNode) -> "Stake":
        return self._stakes.of(self._row_of[drain_node.name])

    def _lost_with(self, drain_node: DrainNode, stake: "Stake") -> int:
        return (
            sum([_lost(each, self._context.now) for each in stake.works]) if stake.works and drain_node.is_ready else 0
        )

    def _saved_by_one(self, sort: Sort) -> int:
        result = self._saved.get(sort)
        if result is None:
            result = self._saved[sort] = self._saved_by(*sort)
        return result

    def _saved_by(self, pool: str, machine: MachineType) -> int:
        if machine.capacity_type == _RESERVED:
            return 0
        left = self._left_of(pool)
        return self._bill(pool, left) - self._bill(pool, left - Counter([machine]))

    def _move(self, drain_node: DrainNode, count: int) -> None:
        pool, machine = drain_node.pool, self._stake(drain_node).machine
        if machine.capacity_type == _RESERVED:
            return
        self._left_of(pool)[machine] += count
        for known in [each for each in self._saved if each[0] == pool]:
            del self._saved[known]

    def _bill(self, pool: str, machines: Counter[MachineType]) -> int:
        tariff = self._tariffs.get(pool)
        if tariff is None:
            tariff = self._tariffs[pool] = Tariff(self._context.pools[pool].spec)
        return tariff.bill(machines).micro_dollars_per_hour

    def _left_of(self, pool: str) -> Counter[MachineType]:
        """Those that stay, but for what is reserved."""
        result = self._left.get(pool)
        if result is None:
            there = {MachineType(*sort): count for sort, count in self._context.fleet.pool(pool).staying.items()}
            unreserved = {each: count for each, count in there.items() if each.capacity_type != _RESERVED}
            result = self._left[pool] = Counter(unreserved)
        return result


class Stake(msgspec.Struct, frozen=True, eq=False):
    """What goes with a node."""

    machine: MachineType
    works: tuple[Work, ...]


class Stakes(PerRow[Stake]):
    """Owner of what goes with each node."""

    def find(self, row: int) -> Stake:
        gpus_of = self.fleet.classes.gpus_of
        there = zip(self.fleet.pods_of_row(row), self.fleet.classes_of_row(row), strict=True)
        asking = ((gpus, pod) for pod, of in there if of.needs_another_place and (gpus := gpus_of(of, pod)))
        works = tuple(_works(asking))
        return Stake(machine_of(self.fleet.rows.node(row).metadata.labels), works)


def _works(asking: Iterable[tuple[int, Pod]]) -> Iterator[Work]:
    """Of pods, with the GPUs that each asks for."""
    for gpus, pod in asking:
        saved, began = pod.metadata.annotations.checkpointed_at, moment_of(pod.status.start_time)
        last = (moment_of(saved) if saved else None) or began
        if gpus and last is not None:
            yield gpus, max(last, began or last)


def _lost(work: Work, now: Instant) -> int:
    """Since it was saved last; a time that is not told, or that is ahead, was now."""
    return work[0] * max(0, now - work[1])


# --- How much of a node is asked for: of its GPUs where it has some, else the dearer of cpu and memory.
#
# Pods of DaemonSets and static pods come with every node and don't count. All in integers, since a threshold decides.


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Of the resource that decides."""

    resource: str
    used: int
    total: int

    def is_at_most(self, percent: int) -> bool:
        """As Cluster Autoscaler 1.32 and later compare. A node with none of the resource counts as full."""
        return bool(self.total) and 100 * self.used <= percent * self.total

    @property
    def percent(self) -> int:
        """Rounded down; a node without anything of it is full."""
        return 100 * self.used // self.total if self.total else 100

    @property
    def percent_rounded_up(self) -> int:
        """Above the threshold whenever the usage is."""
        return -(-100 * self.used // self.total) if self.total else 100


def usage_of(snapshot: Snapshot, row: int) -> Usage:
    """As it is booked now."""
    gpus = _of(snapshot, row, names.NVIDIA_GPU)
    if gpus.total:
        return gpus
    cpu, memory = _of(snapshot, row, CPU), _of(snapshot, row, MEMORY)
    # Compared crosswise, so that nothing is rounded.
    return memory if memory.used * cpu.total > cpu.used * memory.total else cpu


def _of(snapshot: Snapshot, row: int, resource: str) -> Usage:
    column = snapshot.classes.columns.get(resource)
    if column is None:
        return Usage(resource, 0, 0)
    used = sum(
        count * amount
        for each, count in snapshot.booked_on(row).items()
        if not each.goes_with_its_node
        for held, amount in each.held
        if held == column
    )
    return Usage(resource, used, snapshot.stock.allocatable_at(row, column))
