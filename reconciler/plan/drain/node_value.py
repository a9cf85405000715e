"""Value of a node to its cluster: its utilization, what its deletion saves, and what work would be lost."""

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

# --- Savings and lost work: if only some of several nodes can drain, the best drain first.
#
# Theory of operation. The saving is the difference in the hourly bill of the pools without the nodes (plan/sums.py): a
# machine saves its own price while the pool has more machines than are committed, and nothing after that. Reserved
# machines save nothing, because they are paid for anyway. The loss is the work of all pods that move, in
# GPU-milliseconds: their GPUs times the time since their last checkpoint (gpu.scheduling/checkpointed-at), or since
# their start. Draining an unready node loses no work that is not lost already.
#
# The savings of a set of nodes have diminishing returns, pool by pool, and the limits on the number of nodes (of a
# pool, of a policy, of all) are nested. So repeatedly taking the node that saves most beside the nodes taken before,
# and among equal savings the one that loses least, gives an optimal set: no other set of as many nodes saves more, and
# none that saves as much loses less. With clusterMin, or with nodes that drain together, a weaker property holds:
# exchanging one waiting and one draining node improves nothing. All figures are integers and fractions, nothing is
# rounded.

_RESERVED = "reserved"

Key = tuple[int, int]
Sort = tuple[str, MachineType]  # pool and machine type
Work = tuple[int, Instant]  # GPUs of a pod, and when the pod last saved its work


class MachineSavings:
    """Remaining machines of each pool while nodes are removed in a simulation. Mutable."""

    def __init__(self, context: DrainContext) -> None:
        self._context = context
        self.taken = 0  # number of nodes taken so far
        self._tariffs: dict[str, Tariff] = {}
        self._left: dict[str, Counter[MachineType]] = {}
        self._saved: dict[Sort, int] = {}  # saving of one further machine
        self._stakes, self._row_of = context.fleet.snapshot.part(Stakes), context.fleet.snapshot.rows.row_of

    def key(self, drain_node: DrainNode) -> Key:
        """Sort key of a node that drains alone; the lowest is best."""
        stake = self._stake(drain_node)
        return -self._saved_by_one((drain_node.pool, stake.machine)), self._lost_with(drain_node, stake)

    def sort(self, drain_node: DrainNode) -> Sort:
        """Group of nodes with equal savings, which stay equal while nodes are removed."""
        return drain_node.pool, self._stake(drain_node).machine

    def saved(self, nodes: Sequence[DrainNode]) -> Fraction | int:
        """Saving per node, in millionths of a dollar per hour, beside the nodes taken before."""
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
        """Lost work per node, in GPU-milliseconds. `pods`: pods on other nodes that move with them."""
        if len(nodes) == 1 and not pods:
            return self._lost_with(nodes[0], self._stake(nodes[0]))
        gpus_of = self._context.fleet.gpu_requests.of
        elsewhere = sum([_lost(each, self._context.now) for each in _works((gpus_of(pod), pod) for pod in pods)])
        return Fraction(sum([self._lost_with(each, self._stake(each)) for each in nodes]) + elsewhere, len(nodes))

    def take(self, nodes: Iterable[DrainNode]) -> None:
        """Remove nodes from the remaining machines."""
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
        """Machines that stay, without reserved machines."""
        result = self._left.get(pool)
        if result is None:
            there = {MachineType(*sort): count for sort, count in self._context.fleet.pool(pool).staying.items()}
            unreserved = {each: count for each, count in there.items() if each.capacity_type != _RESERVED}
            result = self._left[pool] = Counter(unreserved)
        return result


class Stake(msgspec.Struct, frozen=True, eq=False):
    """Machine and work of a node."""

    machine: MachineType
    works: tuple[Work, ...]


class Stakes(PerRow[Stake]):
    """Cache of `Stake` by row."""

    def find(self, row: int) -> Stake:
        there, gpus_of = self.fleet.observed_on[row], self.fleet.classes.gpus_of
        asking = {each: gpus for each in there.counts if each.pod_class.needs_another_place and (gpus := gpus_of(each))}
        pods = zip(there.booked, there.profiles, strict=True) if asking else ()
        works = tuple(_works((asking[profile], pod) for pod, profile in pods if profile in asking))
        return Stake(machine_of(self.fleet.rows.node(row).metadata.labels), works)


def _works(asking: Iterable[tuple[int, Pod]]) -> Iterator[Work]:
    """Work of pods, with the GPUs that each pod requests."""
    for gpus, pod in asking:
        saved, began = pod.metadata.annotations.checkpointed_at, moment_of(pod.status.start_time)
        last = (moment_of(saved) if saved else None) or began
        if gpus and last is not None:
            yield gpus, max(last, began or last)


def _lost(work: Work, now: Instant) -> int:
    """Lost work since the last checkpoint. A missing or future time counts as now."""
    return work[0] * max(0, now - work[1])


# --- Utilization of a node: of its GPUs if the node has GPUs, else the higher of cpu and memory.
#
# DaemonSet and static pods do not count, because every node has them. Integers, because a threshold decides.


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Utilization of the deciding resource."""

    resource: str
    used: int
    total: int

    def is_at_most(self, percent: int) -> bool:
        """Compared as in Cluster Autoscaler 1.32 and later. A node without the resource counts as full."""
        return bool(self.total) and 100 * self.used <= percent * self.total

    @property
    def percent(self) -> int:
        """Rounded down; 100 for a node without the resource."""
        return 100 * self.used // self.total if self.total else 100

    @property
    def percent_rounded_up(self) -> int:
        """Rounded up, so that the shown figure is above the threshold whenever the utilization is."""
        return -(-100 * self.used // self.total) if self.total else 100


def usage_of(snapshot: Snapshot, row: int) -> Usage:
    """Utilization by the current requests."""
    gpus = _of(snapshot, row, names.NVIDIA_GPU)
    if gpus.total:
        return gpus
    cpu, memory = _of(snapshot, row, CPU), _of(snapshot, row, MEMORY)
    # compared by cross-multiplication, so that nothing is rounded
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
