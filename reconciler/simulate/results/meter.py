"""Metrics of a simulation over time: sums, queue length, waiting times, and the timeline."""

from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate

import msgspec

from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.evaluation import SizeEvaluation
from reconciler.report.simulation.simulated import Did, PoolStep, PoolSum, SimulationTotals, TimelineStep
from reconciler.simulate.actors.karpenter.cloud import MarketOffering
from reconciler.simulate.objects import ObjectWrite, created, is_finished
from reconciler.simulate.results.totals import CostMeter, PoolTotalsTracker, Totals, is_evicted
from reconciler.simulate.stage import Stage

# --- Owner of the metrics: time integrals and counters.
#
# Nothing changes between two writes, so each integral grows by its value times the elapsed time: exact integers for any
# interval.

_HOUR_MS = 3_600_000
_KINDS = ("GpuClaim", "NodeClaim", "Node", "Pod")


class _Over(msgspec.Struct):
    """Time integrals of a pool."""

    gpu_ms: int = 0
    gpu_ms_used: int = 0
    micro_dollar_ms: int = 0
    nodes_first: int = 0
    nodes_most: int = 0


class EventCounts(msgspec.Struct):
    """Counters since the start."""

    evicted: int = 0
    disrupted_gpus: int = 0
    lost: int = 0
    finished: int = 0
    removed: int = 0


class RunMeter:
    """Updated with each write; starts from the state at its creation."""

    def __init__(
        self, stage: Stage, desired: Desired, market: tuple[MarketOffering, ...], priced_by: tuple[Desired, ...] = ()
    ) -> None:
        self.where = PoolTotalsTracker()
        self.purse = CostMeter(desired, market, priced_by)
        self.waits = WaitHistogram()
        self.happened = EventCounts()
        self._stage = stage
        self._until = stage.now
        self._pools: defaultdict[str, _Over] = defaultdict(_Over)
        self._gpu_ms_paid = 0
        self._gpu_ms_pending = 0
        for kind in _KINDS:
            for body in stage.world.of(kind):
                written = created(body)
                self.where.note(written, stage.now)
                self.purse.note(written)
        self.queue = Queueing(self.where)
        self._had = self.purse.bought
        for name, totals in self.where.pools.items():
            self._pools[name] = _Over(nodes_first=totals.nodes, nodes_most=totals.nodes)
        stage.world.subscribe(self._note, *_KINDS)

    def follow(self, desired: Desired) -> None:
        """Sets the policies in force, which determine prices."""
        self.move_on()
        self.purse.follow(desired)

    def move_on(self) -> None:
        """Advances the integrals to the current time."""
        now = self._stage.now
        gone_ms = now - self._until
        if gone_ms <= 0:
            return
        self._until = now
        self._gpu_ms_paid += self.purse.gpus * gone_ms
        self._gpu_ms_pending += self.where.waiting_gpus * gone_ms
        for name, totals in self.where.pools.items():
            over = self._pools[name]
            over.gpu_ms += totals.gpus * gone_ms
            over.gpu_ms_used += totals.gpus_used * gone_ms
        for name in self.purse.pools:
            self._pools[name].micro_dollar_ms += self.purse.micro_dollars_per_hour(name) * gone_ms

    @property
    def bought(self) -> int:
        return self.purse.bought - self._had

    def sums(self) -> SimulationTotals:
        """The current sums, without the controller's actions."""
        self.move_on()
        happened = self.happened
        pools = tuple(self._sum(name) for name in sorted(self._pools))
        return SimulationTotals(
            gpu_ms_paid=self._gpu_ms_paid,
            gpu_ms=sum(each.gpu_ms for each in pools),
            gpu_ms_used=sum(each.gpu_ms_used for each in pools),
            gpu_ms_pending=self._gpu_ms_pending,
            micro_dollars=sum(each.micro_dollars for each in pools),
            unpriced=self.purse.is_unpriced,
            evictions=happened.evicted,
            disrupted_gpus=happened.disrupted_gpus,
            lost_pods=happened.lost,
            finished_pods=happened.finished,
            pending_pods=len(self.where.waiting),
            nodes=sum(each.nodes for each in self.where.pools.values()),
            gpus=sum(each.gpus for each in self.where.pools.values()),
            nodes_bought=self.bought,
            nodes_removed=happened.removed,
            mean_wait_seconds=self.waits.mean_seconds,
            late_wait_seconds=self.waits.within_seconds(95),
            pools=pools,
        )

    def _sum(self, name: str) -> PoolSum:
        over, totals = self._pools[name], self.where.pools.get(name)
        return PoolSum(
            pool=name,
            gpu_ms=over.gpu_ms,
            gpu_ms_used=over.gpu_ms_used,
            micro_dollars=over.micro_dollar_ms // _HOUR_MS,
            nodes_first=over.nodes_first,
            nodes_last=totals.nodes if totals else 0,
            nodes_most=over.nodes_most,
            tainted=totals.tainted if totals else 0,
        )

    def _note(self, written: ObjectWrite) -> None:
        kind = written.key[0]
        self.move_on()
        if kind == "Pod":
            self._note_pod(written)
        else:
            self.happened.removed += kind == "Node" and written.after is None
            self.where.note(written, self._stage.now)
            self.purse.note(written)
        if kind == "Node":
            node = self.where.nodes.get(written.key[2])
            if node is not None:
                over = self._pools[node.pool]
                over.nodes_most = max(over.nodes_most, self.where.pools[node.pool].nodes if not node.is_leaving else 0)

    def _note_pod(self, written: ObjectWrite) -> None:
        key, before, after = written.key, written.before, written.after
        was, since = self.where.pods.get(key), self.where.waiting.get(key)
        self.where.note(written, self._stage.now)
        observed_pod = self.where.pods.get(key)
        self.queue.note()
        if since is not None and key not in self.where.waiting:
            self.queue.note_wait(self._stage.now - since)
        if since is not None and observed_pod is not None and observed_pod.is_placed:
            self.waits.note(self._stage.now - since)
        if was is None or before is None or not was.is_placed or was.is_smart:
            return
        if was.node in self._stage.silent_nodes or was.node not in self.where.nodes:
            self.happened.lost += after is None and was.counts
        elif after is not None and was.counts and is_evicted(before, after):  # DaemonSet pods are deleted with any node
            self.happened.evicted += 1
            self.happened.disrupted_gpus += was.gpus
        if after is not None and is_finished(after):
            self.happened.finished += 1


# --- Owner of the distribution of waiting times, in a logarithmic histogram of fixed size.

_PARTS = 4  # buckets per doubling
_COUNTS = 40 * _PARTS


class WaitHistogram:
    """The mean is exact; percentiles are up to a fifth too high."""

    def __init__(self) -> None:
        self._counts = [0] * _COUNTS
        self._sum_ms = 0
        self._number = 0

    def note(self, waited_ms: int) -> None:
        self._counts[min(_COUNTS - 1, _place(waited_ms // 1_000))] += 1
        self._sum_ms += waited_ms
        self._number += 1

    @property
    def mean_seconds(self) -> int:
        return self._sum_ms // self._number // 1_000 if self._number else 0

    def within_seconds(self, percent: int) -> int:
        """The waiting time that this percentage of pods did not exceed."""
        if not self._number:
            return 0
        wanted = -(-percent * self._number // 100)
        sums = accumulate(self._counts)
        return _most(next(place for place, found in enumerate(sums) if found >= wanted))


def _place(seconds: int) -> int:
    """Below 4, one bucket per second; then four per doubling."""
    if seconds < _PARTS:
        return seconds
    doublings = seconds.bit_length() - _PARTS.bit_length()
    return _PARTS * (doublings + 1) + (seconds >> doublings) - _PARTS


def _most(place: int) -> int:
    """The maximum number of seconds in the bucket."""
    if place < _PARTS:
        return place
    doublings, part = divmod(place - _PARTS, _PARTS)
    return ((part + _PARTS + 1) << doublings) - 1


# --- Owner of the maximum queue length and waiting time since the last query.
#
# Waits that begin and end between two queries are included.


class Queueing:
    """Updated after each write, and with each completed wait."""

    def __init__(self, where: PoolTotalsTracker) -> None:
        self._where = where
        self.pods = self.gpus = 0
        self.longest_wait_ms = 0
        self.note()

    def note(self) -> None:
        """Records the current queue length."""
        self.pods = max(self.pods, len(self._where.waiting))
        self.gpus = max(self.gpus, self._where.waiting_gpus)

    def note_wait(self, waited_ms: int) -> None:
        self.longest_wait_ms = max(self.longest_wait_ms, waited_ms)

    def look(self, now: Instant) -> None:
        """Records the current waits, longest first."""
        self.note_wait(now - next(iter(self._where.waiting.values()), now))

    def forget(self) -> None:
        """Resets to the pods that wait now."""
        self.pods = self.gpus = self.longest_wait_ms = 0
        self.note()


# --- Owner of the timeline: the state at each step, with about a hundred steps for any duration.

MOST_STEPS = 480
MOST_LISTED = 2_000  # writes listed individually in the whole run; further ones are only counted

# Common step lengths in seconds; the last is doubled as needed.
_LENGTHS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600)


def step_ms(duration_ms: int) -> int:
    """The shortest step length within the maximum number of steps."""
    for seconds in _LENGTHS:
        if duration_ms <= seconds * 1_000 * MOST_STEPS:
            return seconds * 1_000
    length_ms = _LENGTHS[-1] * 1_000
    while duration_ms > length_ms * MOST_STEPS:
        length_ms *= 2
    return length_ms


class Timeline:
    """Records the controller's writes, and the metrics at the end of each step."""

    def __init__(self, meter: RunMeter, look: Callable[[TimelineStep], None] | None = None) -> None:
        self.steps: list[TimelineStep] = []
        self.sizes: tuple[SizeEvaluation, ...] = ()  # of the last plan: the evaluation of each NodeProvisioner
        self._to_text = look
        self._meter = meter
        self._before = self._counts()
        self._did: list[Did] = []
        self._left = MOST_LISTED
        self._more = 0

    def note(self, did: Did) -> None:
        if self._left:
            self._did.append(did)
            self._left -= 1
        else:
            self._more += 1

    def step(self, now: Instant, desired: Desired) -> None:
        """Ends a step."""
        meter, where, queue = self._meter, self._meter.where, self._meter.queue
        queue.look(now)
        counts = self._counts()
        happened = {name: count - self._before[name] for name, count in counts.items()}
        self._before = counts
        pools = [
            _pool_step(name, where.pools.get(name, Totals()), self.sizes)
            for name in sorted({*where.pools, *(pool.name for pool in desired.pools)})
        ]
        timeline_step = TimelineStep(
            at=now,
            pools=tuple(pools),
            pending_pods=queue.pods,
            pending_gpus=queue.gpus,
            longest_wait_seconds=queue.longest_wait_ms // 1_000,
            micro_dollars_per_hour=meter.purse.total_per_hour,
            did=tuple(self._did),
            did_more=self._more,
            **happened,
        )
        self.steps.append(timeline_step)
        if self._to_text is not None:
            self._to_text(timeline_step)
        self._did, self._more = [], 0
        queue.forget()

    def _counts(self) -> dict[str, int]:
        names = ("removed", "evicted", "lost", "finished")
        return {"bought": self._meter.bought} | {name: getattr(self._meter.happened, name) for name in names}


def _pool_step(name: str, totals: Totals, sizes: tuple[SizeEvaluation, ...]) -> PoolStep:
    pool_step = PoolStep(name, totals.nodes, totals.busy_nodes, totals.gpus, totals.gpus_used, totals.tainted)
    for each in sizes:
        if each.pool == name:
            return msgspec.structs.replace(pool_step, target=each.target, provisioner=each.provisioner)
    return pool_step
