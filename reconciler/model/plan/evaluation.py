"""Results of evaluations: the size of a pool, how a pool is used, and whether a node is a candidate for a drain."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Reason
from reconciler.model.plan.memory import FailedPlacement

# --- What a node was found to be when it was looked at for a drain: a candidate, or not, and why.


class DrainEligibility(msgspec.Struct, frozen=True, gc=False):
    """One node of a pool that a DrainPolicy names."""

    node: str
    pool: str
    policy: str  # name of the DrainPolicy
    reason: Reason
    is_candidate: bool = False
    since: Instant | None = None  # of a candidate: since when it is known to be one
    tried: FailedPlacement | None = None  # of one that is none: when it was last found that its pods have no places


# --- How a pool is used.


class Use(msgspec.Struct, frozen=True, gc=False):
    """A pool as it is used: its nodes that are not being deleted, tainted ones included."""

    nodes: int
    busy_nodes: int  # nodes with a pod that counts
    gpus_used: int
    gpus_total: int
    gpus_per_node: int
    # Where its nodes differ in GPUs: those of each empty node, in the order in which they go. None: all are alike.
    spare: tuple[int, ...] | None = None
    drained_nodes: int = 0  # busy ones that are being emptied: places were found for what runs there
    free_nodes: int | None = None  # empty, or held by a smart pod only; None: all that are not busy
    closed_nodes: int = 0  # empty ones that others have cordoned: they stay, take no pods, and are no spare nodes

    @property
    def needed_nodes(self) -> int:
        """Nodes in use by pods or claims. What is drained goes to such nodes: none is needed in its stead."""
        in_use = self.busy_nodes if self.free_nodes is None else self.nodes - self.free_nodes
        return max(0, in_use - self.drained_nodes)

    def nodes_with_spare(self, spare: int) -> int:
        """How many nodes the pool has where so many of them are free for pods."""
        return self.needed_nodes + (spare + self.closed_nodes if spare else 0)


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
