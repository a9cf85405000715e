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

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.instant import Instant, moment
from reconciler.model.plan.disruption_record import DisruptionRecord
from reconciler.model.resource_quantity import whole_number
from reconciler.plan.guards.context import CLAIMS, GuardContext

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
