"""Owner of a sum over marks, by the measures that a guard limits.

A limit in percent is of the nodes that a pool has when the window begins: now, for a plan; an hour ago, for an hour.
With p percent of a pool of s nodes, max(1, floor(p * s / 100)) nodes may go, so that a pool of a few nodes can shrink
too, one node a window; with 0 percent none may. Told in percent, that limit is p, or what one node is of the pool.
"""

from collections import Counter
from collections.abc import Iterable
from typing import get_args

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, moment
from reconciler.model.plan.disruption_record import DisruptionRecord
from reconciler.model.plan.guard_verdict import Measure
from reconciler.model.policy.change_guard import Ceiling

MEASURES: tuple[Measure, ...] = get_args(Measure)
# As people write them below perPlan and perHour.
FIELDS = {each.name.removeprefix("max_"): each.encode_name for each in msgspec.structs.fields(Ceiling)}


class Roll:
    """The nodes of each pool that nobody is deleting yet, and that were there when a window began: what percentages
    are of. Nodes that came since make no room for others to go."""

    def __init__(self, fleet: Fleet, since: Instant | None = None) -> None:
        self._fleet, self._since = fleet, since
        self._sizes: dict[str, int] = {}

    def has(self, mark: DisruptionRecord) -> bool:
        """Whether what was marked is among them by its name."""
        node = self._fleet.node(mark.name)
        return node is not None and node.pool == mark.pool and not node.metadata.leaving

    def size(self, pool: str) -> int:
        result = self._sizes.get(pool)
        if result is None:
            there = (each for each in self._fleet.nodes_of(pool) if not each.metadata.leaving)
            result = self._sizes[pool] = sum(self._was_there(each) for each in there)
        return result

    def _was_there(self, node: Node) -> bool:
        """A node that does not say when it came was there."""
        since = self._since
        return since is None or (moment(node.metadata.creation_timestamp) or since) <= since


class LimitCount(msgspec.Struct, frozen=True, gc=False):
    """What there is of one measure, and what is allowed."""

    counted: int
    allowed: int
    pool: str = ""  # of a percentage

    @property
    def is_over(self) -> bool:
        return self.counted > self.allowed


class DisruptionSums:
    """What has been added; each mark is to be added once."""

    def __init__(self, roll: Roll, marks: Iterable[DisruptionRecord] = ()) -> None:
        self._roll = roll
        self._simple: Counter[Measure] = Counter()
        self._going: Counter[str] = Counter()  # nodes that go for good, by pool
        self._gone: Counter[str] = Counter()  # those of them that are not on the roll any more
        for mark in marks:
            self.add(mark)

    def add(self, mark: DisruptionRecord, times: int = 1) -> None:
        """Or take it out again: -1."""
        self._simple["deleted_node_pools"] += times * (mark.kind == "NodePool")
        self._simple["disrupted_gpus"] += times * mark.gpus
        if mark.goes:
            self._simple["removed_nodes"] += times * (not mark.gpus)
            self._going[mark.pool] += times
            self._gone[mark.pool] += times * (not self._roll.has(mark))

    def copy(self) -> "DisruptionSums":
        other = DisruptionSums(self._roll)
        other._simple, other._going, other._gone = self._simple.copy(), self._going.copy(), self._gone.copy()
        return other

    def plus(self, marks: Iterable[DisruptionRecord]) -> "DisruptionSums":
        """With these too."""
        other = self.copy()
        for mark in marks:
            other.add(mark)
        return other

    def amount(self, measure: Measure) -> int:
        """Percentages are those of the pool that loses most, rounded up: more than a limit shows as more."""
        if measure == "removed_percent":
            return max((self._percent(pool) for pool in self._losing), default=0)
        return self._simple[measure]

    def count(self, measure: Measure, limit: int) -> LimitCount:
        """What there is and what is allowed; of percentages, in the pool that is over its limit, else in the one that
        loses most."""
        if measure != "removed_percent":
            return LimitCount(self._simple[measure], limit)
        limit_counts = (LimitCount(self._percent(pool), self._allowed(pool, limit), pool) for pool in self._losing)
        return max(limit_counts, key=lambda each: (each.is_over, each.counted), default=LimitCount(0, limit))

    @property
    def _losing(self) -> list[str]:
        """Pools that lose nodes."""
        return sorted(pool for pool, count in self._going.items() if count)

    def _percent(self, pool: str) -> int:
        return -(-100 * self._going[pool] // self._size(pool))

    def _allowed(self, pool: str, limit: int) -> int:
        """In percent of the pool; one node may go, unless none may."""
        return max(limit, -(-100 // self._size(pool))) if limit else 0

    def _size(self, pool: str) -> int:
        """Of a pool that loses nodes. Nodes that came and went within the window were there in between."""
        return max(self._roll.size(pool) + self._gone[pool], self._going[pool], 1)

    def over(self, ceiling: Ceiling) -> tuple[Measure, ...]:
        """What it is over of."""
        found = ((measure, limit_of(ceiling, measure)) for measure in MEASURES)
        return tuple(measure for measure, limit in found if limit is not None and self.count(measure, limit).is_over)


def limit_of(ceiling: Ceiling, measure: Measure) -> int | None:
    """None: no limit."""
    limit: int | None = getattr(ceiling, f"max_{measure}")
    return limit
