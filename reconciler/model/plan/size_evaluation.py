"""What a NodeProvisioner comes to when it is looked at: how its pool stands, the size that follows, and why."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.reason import Reason
from reconciler.model.pool_use import Use

# What keeps it from doing otherwise: from buying what pods need, or from marking and deleting empty nodes.
LimitKind = Literal["ScaleUpLimited", "ScaleDownHeld"]


class Limit(msgspec.Struct, frozen=True, gc=False):
    """Something that keeps it from what it would do otherwise."""

    kind: LimitKind
    reason: Reason


class Marked(msgspec.Struct, frozen=True, gc=False):
    """A node that is to go: it bears our taint, or would if its pool did not only observe."""

    node: str
    at: Instant  # when it is deleted if it is empty then
    is_hard: bool = False  # pods are no longer placed on it


class SizeEvaluation(msgspec.Struct, frozen=True, gc=False):
    """One NodeProvisioner, before anything is done for it."""

    provisioner: str
    pool: str
    use: Use  # nodes that are not being deleted, busy ones, GPUs
    target: int  # how many nodes it shall have
    reason: Reason  # why so many
    surplus: int = 0  # how many nodes scaling is to take away, marked ones included: none that goes without it
    leaving: int = 0  # of its nodes, those on their way out: marked, being drained, or disrupted by Karpenter
    leaving_otherwise: int = 0  # of these, those that are not ours to keep: being drained, or disrupted by Karpenter
    arriving: int = 0  # machines that were bought and whose nodes have not come yet
    pods: int = 0  # that find no place, and are to be served here
    missing: int = 0  # nodes that nobody has bought yet
    marked: tuple[Marked, ...] = ()  # by name
    limits: tuple[Limit, ...] = ()

    @property
    def size(self) -> int:
        return self.use.nodes

    @property
    def tainted(self) -> int:
        """Nodes that are marked."""
        return len(self.marked)
