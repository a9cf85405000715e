"""Owner of the timeline: how things stood at each step, some hundred of them however long the time is."""

from collections.abc import Callable

import msgspec

from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.size_evaluation import SizeEvaluation
from reconciler.report.simulation.simulated import Did, PoolStep, TimelineStep
from reconciler.simulate.results.meter import RunMeter
from reconciler.simulate.results.totals import Totals

MOST_STEPS = 480
MOST_LISTED = 2_000  # writes of the whole run that are told one by one; the rest is counted

# Lengths of a step that people reckon with, in seconds; the last is doubled as often as need be.
_LENGTHS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600)


def step_ms(duration_ms: int) -> int:
    """The shortest such that there are not too many."""
    for seconds in _LENGTHS:
        if duration_ms <= seconds * 1_000 * MOST_STEPS:
            return seconds * 1_000
    length = _LENGTHS[-1] * 1_000
    while duration_ms > length * MOST_STEPS:
        length *= 2
    return length


class Timeline:
    """Told of each write of the controller; looks at the meter when a step is over."""

    def __init__(self, meter: RunMeter, look: Callable[[TimelineStep], None] | None = None) -> None:
        self.steps: list[TimelineStep] = []
        self.sizes: tuple[SizeEvaluation, ...] = ()  # of the last plan: what each provisioner came to
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
        """One step is over."""
        meter, where, queue = self._meter, self._meter.where, self._meter.queue
        queue.look(now)
        counts = self._counts()
        bought, removed, evicted, lost, finished = (
            after - before for before, after in zip(self._before, counts, strict=True)
        )
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
            bought=bought,
            removed=removed,
            evicted=evicted,
            lost=lost,
            finished=finished,
            did=tuple(self._did),
            did_more=self._more,
        )
        self.steps.append(timeline_step)
        if self._to_text is not None:
            self._to_text(timeline_step)
        self._did, self._more = [], 0
        queue.forget()

    def _counts(self) -> tuple[int, int, int, int, int]:
        happened = self._meter.happened
        return self._meter.bought, happened.removed, happened.evicted, happened.lost, happened.finished


def _pool_step(name: str, totals: Totals, sizes: tuple[SizeEvaluation, ...]) -> PoolStep:
    pool_step = PoolStep(name, totals.nodes, totals.busy_nodes, totals.gpus, totals.gpus_used, totals.tainted)
    for each in sizes:
        if each.pool == name:
            return msgspec.structs.replace(pool_step, target=each.target, provisioner=each.provisioner)
    return pool_step
