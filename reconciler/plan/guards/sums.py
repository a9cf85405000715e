"""Owner of a sum over marks, by the measures that a guard limits."""

from collections import Counter
from collections.abc import Iterable
from typing import get_args

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.kinds.change_guard import Ceiling
from reconciler.model.planned.guarded import Measure
from reconciler.model.planned.mark import Mark

MEASURES: tuple[Measure, ...] = get_args(Measure)
# As people write them below perPlan and perHour.
FIELDS = {each.name.removeprefix("max_"): each.encode_name for each in msgspec.structs.fields(Ceiling)}


class Roll:
    """The nodes of each pool that nobody is deleting yet: what percentages are of."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def has(self, mark: Mark) -> bool:
        """Whether what was marked is among them by its name."""
        node = self._fleet.node(mark.name)
        return node is not None and node.pool == mark.pool and not node.metadata.leaving

    def size(self, pool: str) -> int:
        leaving = sum(each.pool == pool and each.metadata.leaving for each in self._fleet.nodes_taken_away)
        return len(self._fleet.nodes_of(pool)) - leaving


class Sums:
    """What has been added; each mark is to be added once."""

    def __init__(self, roll: Roll, marks: Iterable[Mark] = ()) -> None:
        self._roll = roll
        self._simple: Counter[Measure] = Counter()
        self._going: Counter[str] = Counter()  # nodes that go for good, by pool
        self._gone: Counter[str] = Counter()  # those of them that are not on the roll any more
        for mark in marks:
            self.add(mark)

    def add(self, mark: Mark, times: int = 1) -> None:
        """Or take it out again: -1."""
        self._simple["deleted_node_pools"] += times * (mark.kind == "NodePool")
        self._simple["disrupted_gpus"] += times * mark.gpus
        if mark.goes:
            self._simple["removed_nodes"] += times * (not mark.gpus)
            self._going[mark.pool] += times
            self._gone[mark.pool] += times * (not self._roll.has(mark))

    def copy(self) -> "Sums":
        other = Sums(self._roll)
        other._simple, other._going, other._gone = self._simple.copy(), self._going.copy(), self._gone.copy()
        return other

    def plus(self, marks: Iterable[Mark]) -> "Sums":
        """With these too."""
        other = self.copy()
        for mark in marks:
            other.add(mark)
        return other

    def amount(self, measure: Measure) -> int:
        """Percentages are those of the pool that loses most, rounded up: more than a limit shows as more."""
        if measure == "removed_percent":
            return self._percent(self.hardest_hit) if self.hardest_hit else 0
        return self._simple[measure]

    @property
    def hardest_hit(self) -> str:
        """The pool that loses the most, in percent; nothing where none loses a node."""
        losing = sorted(pool for pool, count in self._going.items() if count)
        return max(losing, key=self._percent, default="")

    def _percent(self, pool: str) -> int:
        return -(-100 * self._going[pool] // (self._roll.size(pool) + self._gone[pool]))

    def over(self, ceiling: Ceiling) -> tuple[Measure, ...]:
        """What it is over of."""
        found = ((measure, limit_of(ceiling, measure)) for measure in MEASURES)
        return tuple(measure for measure, limit in found if limit is not None and self.amount(measure) > limit)


def limit_of(ceiling: Ceiling, measure: Measure) -> int | None:
    """None: no limit."""
    limit: int | None = getattr(ceiling, f"max_{measure}")
    return limit
