"""Owner of the figures of a simulation: what adds up over time, and what happened so far.

Between two writes nothing changes, so that each sum is moved on by what stood, times how long it stood: exact, in
integers, whatever the time between two looks.
"""

import msgspec

from reconciler.model.desired import Desired
from reconciler.report.simulation.simulated import PoolSum, SimulationTotals
from reconciler.simulate.market import MarketOffering
from reconciler.simulate.objects import ObjectWrite
from reconciler.simulate.results.cost_meter import CostMeter
from reconciler.simulate.results.queue_meter import Queueing
from reconciler.simulate.results.read_objects import is_evicted, is_finished
from reconciler.simulate.results.totals import PoolTotalsTracker
from reconciler.simulate.results.wait_histogram import WaitHistogram
from reconciler.simulate.stage import Stage

_HOUR_MS = 3_600_000
_KINDS = ("GpuClaim", "NodeClaim", "Node", "Pod")


class _Over(msgspec.Struct):
    """A pool over time."""

    gpu_ms: int = 0
    gpu_ms_used: int = 0
    micro_dollar_ms: int = 0
    nodes_first: int = 0
    nodes_most: int = 0


class EventCounts(msgspec.Struct):
    """Counts since the beginning."""

    evicted: int = 0
    disrupted_gpus: int = 0
    lost: int = 0
    finished: int = 0
    removed: int = 0


class RunMeter:
    """Told of each write; what stood when it was made is the beginning."""

    def __init__(
        self, stage: Stage, desired: Desired, market: tuple[MarketOffering, ...], priced_by: tuple[Desired, ...] = ()
    ) -> None:
        self.where = PoolTotalsTracker()
        self.purse = CostMeter(desired, market, priced_by)
        self.waits = WaitHistogram()
        self.happened = EventCounts()
        self._stage = stage
        self._until = stage.now
        self._pools: dict[str, _Over] = {}
        self._gpu_ms_paid = 0
        self._gpu_ms_pending = 0
        for kind in _KINDS:
            for body in stage.world.of(kind):
                metadata = body["metadata"]
                written = ObjectWrite((kind, metadata.get("namespace", ""), metadata["name"]), None, body)
                self.where.note(written, stage.now)
                self.purse.note(written)
        self.queue = Queueing(self.where)
        self._had = self.purse.bought
        for name, totals in self.where.pools.items():
            self._pools[name] = _Over(nodes_first=totals.nodes, nodes_most=totals.nodes)
        stage.world.subscribe(self._note, *_KINDS)

    def follow(self, desired: Desired) -> None:
        """Other policies are in force: they say what is paid."""
        self.move_on()
        self.purse.follow(desired)

    def move_on(self) -> None:
        """To the hour that it is."""
        now = self._stage.now
        gone_ms = now - self._until
        if gone_ms <= 0:
            return
        self._until = now
        self._gpu_ms_paid += self.purse.gpus * gone_ms
        self._gpu_ms_pending += self.where.waiting_gpus * gone_ms
        for name, totals in self.where.pools.items():
            over = self._over(name)
            over.gpu_ms += totals.gpus * gone_ms
            over.gpu_ms_used += totals.gpus_used * gone_ms
        for name in self.purse.pools:
            self._over(name).micro_dollar_ms += self.purse.micro_dollars_per_hour(name) * gone_ms

    @property
    def bought(self) -> int:
        """Machines since the beginning."""
        return self.purse.bought - self._had

    def sums(self) -> SimulationTotals:
        """As they are now, without what the controller did."""
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

    def _over(self, pool: str) -> _Over:
        return self._pools.setdefault(pool, _Over())

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
                over = self._over(node.pool)
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
        elif after is not None and was.counts and is_evicted(before, after):  # those of DaemonSets go with any node
            self.happened.evicted += 1
            self.happened.disrupted_gpus += was.gpus
        if after is not None and is_finished(after):
            self.happened.finished += 1
