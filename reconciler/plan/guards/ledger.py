"""Disruption ledger: what was removed or disrupted in the last hour, and what is still leaving.

A record is made when a plan disrupts something, and lasts for the hour that guards look back on. The record of a
node with a sign of leaving lasts until the node is gone, so a drift that takes days, or a long drain, counts once.
If a node loses every such sign and is taken again, the node counts again from then on; within a few minutes that is
the same attempt, because the decision may not be observed yet.

A node that leaves without a record was removed by Karpenter or a person. It counts from its deletion time, as well
as that is known.

Unread objects show no sign of leaving, but their records stay: a partial read never lowers a count. A record with a
future time was made before the clock was set back, and gets the current time; otherwise the record would count until
that future time.
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
from reconciler.plan.guards.reasons import GuardSum
from reconciler.plan.guards.removals import CLAIMS, GuardContext

HOUR_MS = 3_600_000
SAME_ATTEMPT_MS = 600_000


class DisruptionLedger:
    """Disruption records, indexed by uid. Immutable."""

    def __init__(self, stage: GuardContext, marks: Sequence[DisruptionRecord], pools: frozenset[str]) -> None:
        """`pools`: pools where disruptions by others count."""
        self._stage = stage
        kept = [_not_ahead(each, stage.now) for each in marks if self._lasts(each)]
        self._by_uid = _by_uid(kept)
        others = {key_of(each): each for each in _of_others(stage, pools) if self.known(each) is None}
        self.marks = tuple(sorted([*kept, *others.values()]))
        self._by_uid = _by_uid(self.marks)

    def known(self, mark: DisruptionRecord) -> DisruptionRecord | None:
        """The existing record of the same object."""
        return next((self._by_uid[uid] for uid in (mark.uid, mark.claim) if uid in self._by_uid), None)

    def key(self, mark: DisruptionRecord) -> str:
        """Key under which an object counts once: that of its existing record."""
        return key_of(self.known(mark) or mark)

    def counts_already(self, mark: DisruptionRecord) -> bool:
        """Whether the object has a record and has been leaving since."""
        known = self.known(mark)
        return known is not None and self._stage.is_leaving(known)

    def in_the_hour(self) -> tuple[DisruptionRecord, ...]:
        """Records of the last hour, oldest first."""
        return tuple(each for each in self.marks if each.at > self._stage.now - HOUR_MS)

    def merged(self, mark: DisruptionRecord) -> DisruptionRecord:
        """The record, merged with the existing record of the same object. The larger values count. The time of the
        existing record stays for the same attempt.
        """
        known = self.known(mark)
        if known is None:
            return mark
        says_more = mark.goes > known.goes or mark.gpus > known.gpus
        at = mark.at if says_more or mark.at - known.at >= SAME_ATTEMPT_MS else known.at
        approvals = tuple(sorted({*known.approvals, *mark.approvals}))
        goes, gpus = known.goes or mark.goes, max(known.gpus, mark.gpus)
        return msgspec.structs.replace(mark, at=at, goes=goes, gpus=gpus, approvals=approvals)

    def with_taken(self, taken: Sequence[DisruptionRecord]) -> tuple[DisruptionRecord, ...]:
        """All records, including those of this plan."""
        marks = {key_of(each): each for each in self.marks}
        marks |= {self.key(each): self.merged(each) for each in taken}
        return tuple(sorted(marks.values()))

    def _lasts(self, mark: DisruptionRecord) -> bool:
        return mark.at > self._stage.now - HOUR_MS or self._is_unseen(mark) or self._stage.is_leaving(mark)

    def _is_unseen(self, mark: DisruptionRecord) -> bool:
        return mark.kind == "Node" and bool(self._stage.observed.why_unread("nodes", CLAIMS))


def key_of(mark: DisruptionRecord) -> str:
    """Key under which a record counts once."""
    return mark.uid or mark.claim or f"{mark.kind}/{mark.name}"


def _not_ahead(mark: DisruptionRecord, now: Instant) -> DisruptionRecord:
    return msgspec.structs.replace(mark, at=now) if mark.at > now else mark


def _by_uid(marks: Sequence[DisruptionRecord]) -> dict[str, DisruptionRecord]:
    return {uid: each for each in marks for uid in (each.uid, each.claim) if uid}


def _of_others(stage: GuardContext, pools: frozenset[str]) -> Iterator[DisruptionRecord]:
    """Nodes of the pools that others removed within the hour, and terminating NodeClaims whose node is gone already."""
    for node in stage.fleet.nodes_taken_away:
        if node.pool in pools:
            yield from _observed_leaving(stage, stage.mark(node, goes=True), node.metadata.deletion_timestamp)
    for claim in stage.fleet.claims_leaving:
        pool = claim.metadata.labels.get(names.KARPENTER_POOL, "")
        # A NodeClaim that never had a node loses no node: for example, the launch found no capacity.
        if claim.status.node_name and pool in pools:
            node_there = stage.fleet.node(claim.status.node_name)
            mark = stage.mark(node_there, goes=True) if node_there else _nodeless(stage, claim, pool)
            yield from _observed_leaving(stage, mark, claim.metadata.deletion_timestamp)


def _nodeless(stage: GuardContext, claim: NodeClaim, pool: str) -> DisruptionRecord:
    """Record for a NodeClaim without a node. If nodes could not be read, all its GPUs count as used; else its pods are
    gone already.
    """
    found = claim.status.allocatable.get(names.NVIDIA_GPU, "0") if stage.observed.why_unread("nodes") else "0"
    gpus = whole_number(found)
    return DisruptionRecord(
        stage.now, "Node", claim.status.node_name, "", claim.metadata.uid, pool, goes=True, gpus=gpus
    )


def _observed_leaving(stage: GuardContext, mark: DisruptionRecord, deleted_at: str) -> Iterator[DisruptionRecord]:
    """Record of a node that others remove. A busy node counts as replaced, because the outcome is unknown."""
    instant = moment(deleted_at)
    at = stage.now if instant is None else min(stage.now, instant)
    if at > stage.now - HOUR_MS:
        yield msgspec.structs.replace(mark, at=at, goes=not mark.gpus, own=False)


# --- Sums over records, by the measures that a guard limits.
#
# A percentage limit is of the nodes that a pool has when the window begins: now for a plan, an hour ago for an hour.
# With p percent of a pool of s nodes, max(1, floor(p * s / 100)) nodes may leave, so that a small pool can shrink too,
# by one node per window; with 0 percent no node may leave. In reports, the limit is p, or the percentage of one node.

MEASURES: tuple[Measure, ...] = get_args(Measure)
# Field names below perPlan and perHour.
FIELDS = {each.name.removeprefix("max_"): each.encode_name for each in msgspec.structs.fields(Ceiling)}


class Roll:
    """Nodes of each pool that are not being deleted and that existed when a window began: the base of percentages.
    Newer nodes allow no further removals.
    """

    def __init__(self, fleet: Fleet, since: Instant | None = None) -> None:
        self._fleet, self._since = fleet, since
        self._sizes: dict[str, int] = {}

    def has(self, mark: DisruptionRecord) -> bool:
        """Whether the recorded node is among the base nodes."""
        node = self._fleet.node(mark.name)
        return node is not None and node.pool == mark.pool and not node.metadata.leaving

    def size(self, pool: str) -> int:
        result = self._sizes.get(pool)
        if result is None:
            there = (each for each in self._fleet.nodes_of(pool) if not each.metadata.leaving)
            result = self._sizes[pool] = sum(self._was_there(each) for each in there)
        return result

    def _was_there(self, node: Node) -> bool:
        """Whether the node existed then. A node without a creation time counts as existing."""
        since = self._since
        return since is None or (moment(node.metadata.creation_timestamp) or since) <= since


class DisruptionSums:
    """Sums by measure. Each record must be added once. Mutable."""

    def __init__(self, roll: Roll, marks: Iterable[DisruptionRecord] = ()) -> None:
        self._roll = roll
        self._simple: Counter[Measure] = Counter()
        self._going: Counter[str] = Counter()  # nodes that leave for good, by pool
        self._gone: Counter[str] = Counter()  # leaving nodes that are not base nodes any more
        for mark in marks:
            self.add(mark)

    def add(self, mark: DisruptionRecord, times: int = 1) -> None:
        """Add a record, or remove it with -1."""
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
        """Copy with further records."""
        other = self.copy()
        for mark in marks:
            other.add(mark)
        return other

    def amount(self, measure: Measure) -> int:
        """Amount of a measure. A percentage is that of the pool that loses most, rounded up, so that an excess always
        shows.
        """
        if measure == "removed_percent":
            return max((self._percent(pool) for pool in self._losing), default=0)
        return self._simple[measure]

    def count(self, measure: Measure, limit: int) -> GuardSum:
        """Amount and limit of a measure. For percentages, of a pool over its limit, else of the pool that
        loses most.
        """
        if measure != "removed_percent":
            return GuardSum(measure, self._simple[measure], limit)
        sums = (GuardSum(measure, self._percent(pool), self._allowed(pool, limit), pool) for pool in self._losing)
        return max(sums, key=lambda each: (each.is_over, each.counted), default=GuardSum(measure, 0, limit))

    @property
    def _losing(self) -> list[str]:
        """Pools that lose nodes."""
        return sorted(pool for pool, count in self._going.items() if count)

    def _percent(self, pool: str) -> int:
        return -(-100 * self._going[pool] // self._size(pool))

    def _allowed(self, pool: str, limit: int) -> int:
        """Limit in percent of the pool. One node may leave, unless the limit is 0."""
        return max(limit, -(-100 // self._size(pool))) if limit else 0

    def _size(self, pool: str) -> int:
        """Base size of a pool that loses nodes. Nodes that joined and left within the window count."""
        return max(self._roll.size(pool) + self._gone[pool], self._going[pool], 1)

    def over(self, ceiling: Ceiling) -> tuple[Measure, ...]:
        """Measures beyond the ceiling."""
        found = ((measure, limit_of(ceiling, measure)) for measure in MEASURES)
        return tuple(measure for measure, limit in found if limit is not None and self.count(measure, limit).is_over)


def limit_of(ceiling: Ceiling, measure: Measure) -> int | None:
    """Limit of a measure; None if there is no limit."""
    limit: int | None = getattr(ceiling, f"max_{measure}")
    return limit
