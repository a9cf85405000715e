"""The marks that one plan starts from: what was taken away in the last hour, and what is on its way out still.

A mark is made when a plan takes something, and lasts for the hour that guards look back on; of a node that shows a sign
of leaving it lasts until the node is gone, so that a drift that takes days, or a node that is long in draining, counts
once. A node that lost every sign and is taken again counts again, from then on; within a few minutes that is the same
attempt, since what was decided may not be seen yet.

A node that leaves without a mark was taken by another: Karpenter, or a person. It counts in the hour from when it was
deleted, as well as that is known.

What could not be read shows no sign, and that ends nothing: a partial read never lowers a count. A mark of an hour
that is yet to come was made before the clock was set back, and counts from now on: else it would count until then.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.instant import Instant, moment
from reconciler.model.plan.guard_verdict import DisruptionRecord, Measure
from reconciler.model.policy.guards import Ceiling
from reconciler.model.quantity import whole_number
from reconciler.plan.guards.removals import CLAIMS, GuardContext

HOUR_MS = 3_600_000
SAME_ATTEMPT_MS = 600_000


class DisruptionLedger:
    """The marks by what they are of; it never changes."""

    def __init__(self, stage: GuardContext, marks: Sequence[DisruptionRecord], pools: frozenset[str]) -> None:
        """`pools` are those of which others' doings count."""
        self._stage = stage
        kept = [_not_ahead(each, stage.now) for each in marks if self._lasts(each)]
        self._by_uid = _by_uid(kept)
        others = {key_of(each): each for each in _of_others(stage, pools) if self.known(each) is None}
        self.marks = tuple(sorted([*kept, *others.values()]))
        self._by_uid = _by_uid(self.marks)

    def known(self, mark: DisruptionRecord) -> DisruptionRecord | None:
        """The mark that there is of the same."""
        return next((self._by_uid[uid] for uid in (mark.uid, mark.claim) if uid in self._by_uid), None)

    def key(self, mark: DisruptionRecord) -> str:
        """By which it is counted once; that of the mark that there is of the same."""
        return key_of(self.known(mark) or mark)

    def counts_already(self, mark: DisruptionRecord) -> bool:
        """Whether it was marked, and has been on its way out since."""
        known = self.known(mark)
        return known is not None and self._stage.is_leaving(known)

    def in_the_hour(self) -> tuple[DisruptionRecord, ...]:
        """What was marked in the hour that ends now, oldest first."""
        return tuple(each for each in self.marks if each.at > self._stage.now - HOUR_MS)

    def merged(self, mark: DisruptionRecord) -> DisruptionRecord:
        """With the mark that there is of the same: whichever says more; from when that was, for the same attempt."""
        known = self.known(mark)
        if known is None:
            return mark
        says_more = mark.goes > known.goes or mark.gpus > known.gpus
        at = mark.at if says_more or mark.at - known.at >= SAME_ATTEMPT_MS else known.at
        approvals = tuple(sorted({*known.approvals, *mark.approvals}))
        goes, gpus = known.goes or mark.goes, max(known.gpus, mark.gpus)
        return msgspec.structs.replace(mark, at=at, goes=goes, gpus=gpus, approvals=approvals)

    def with_taken(self, taken: Sequence[DisruptionRecord]) -> tuple[DisruptionRecord, ...]:
        """All marks once these are made."""
        marks = {key_of(each): each for each in self.marks}
        marks |= {self.key(each): self.merged(each) for each in taken}
        return tuple(sorted(marks.values()))

    def _lasts(self, mark: DisruptionRecord) -> bool:
        return mark.at > self._stage.now - HOUR_MS or self._is_unseen(mark) or self._stage.is_leaving(mark)

    def _is_unseen(self, mark: DisruptionRecord) -> bool:
        return mark.kind == "Node" and bool(self._stage.observed.why_unread("nodes", CLAIMS))


def key_of(mark: DisruptionRecord) -> str:
    """By which a mark is counted once."""
    return mark.uid or mark.claim or f"{mark.kind}/{mark.name}"


def _not_ahead(mark: DisruptionRecord, now: Instant) -> DisruptionRecord:
    return msgspec.structs.replace(mark, at=now) if mark.at > now else mark


def _by_uid(marks: Sequence[DisruptionRecord]) -> dict[str, DisruptionRecord]:
    return {uid: each for each in marks for uid in (each.uid, each.claim) if uid}


def _of_others(stage: GuardContext, pools: frozenset[str]) -> Iterator[DisruptionRecord]:
    """Nodes of these pools that are leaving, in the hour; and NodeClaims that are, whose node is gone before them."""
    for node in stage.fleet.nodes_taken_away:
        if node.pool in pools:
            yield from _observed_leaving(stage, stage.mark(node, goes=True), node.metadata.deletion_timestamp)
    for claim in stage.fleet.claims_leaving:
        pool = claim.metadata.labels.get(names.KARPENTER_POOL, "")
        # One that never had a node is no node that is lost: it was not to be had, say.
        if claim.status.node_name and pool in pools:
            node_there = stage.fleet.node(claim.status.node_name)
            mark = stage.mark(node_there, goes=True) if node_there else _nodeless(stage, claim, pool)
            yield from _observed_leaving(stage, mark, claim.metadata.deletion_timestamp)


def _nodeless(stage: GuardContext, claim: NodeClaim, pool: str) -> DisruptionRecord:
    """All its GPUs are taken for used where nodes could not be read; else what ran there has gone already."""
    found = claim.status.allocatable.get(names.NVIDIA_GPU, "0") if stage.observed.why_unread("nodes") else "0"
    gpus = whole_number(found)
    return DisruptionRecord(
        stage.now, "Node", claim.status.node_name, "", claim.metadata.uid, pool, goes=True, gpus=gpus
    )


def _observed_leaving(stage: GuardContext, mark: DisruptionRecord, deleted_at: str) -> Iterator[DisruptionRecord]:
    """A busy node is taken for one that is replaced: whether it is, nobody can tell yet."""
    instant = moment(deleted_at)
    at = stage.now if instant is None else min(stage.now, instant)
    if at > stage.now - HOUR_MS:
        yield msgspec.structs.replace(mark, at=at, goes=not mark.gpus, own=False)


# --- Owner of a sum over marks, by the measures that a guard limits.
#
# A limit in percent is of the nodes that a pool has when the window begins: now, for a plan; an hour ago, for an hour.
# With p percent of a pool of s nodes, max(1, floor(p * s / 100)) nodes may go, so that a pool of a few nodes can shrink
# too, one node a window; with 0 percent none may. Told in percent, that limit is p, or what one node is of the pool.

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
