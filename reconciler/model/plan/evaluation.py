"""Results of evaluations: size and utilization of a pool, and drain eligibility of nodes."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Reason
from reconciler.model.plan.feature_report import FeatureReport
from reconciler.model.plan.memory import FailedPlacement

# --- Drain eligibility: whether a node is a candidate, and why.


class DrainEligibility(msgspec.Struct, frozen=True, gc=False):
    """One node of a pool that a DrainPolicy names."""

    node: str
    pool: str
    policy: str  # name of the DrainPolicy
    reason: Reason
    is_candidate: bool = False
    since: Instant | None = None  # of a candidate: since when
    tried: FailedPlacement | None = None  # of a non-candidate: the last failed placement of its pods


class DrainReport(msgspec.Struct, FeatureReport, frozen=True, tag=True):
    """Report of the drain feature."""

    weighed: tuple[DrainEligibility, ...] = ()  # each node of a pool that a DrainPolicy names, by name


# --- Utilization of a pool.


class Use(msgspec.Struct, frozen=True, gc=False):
    """Utilization of a pool: its nodes that are not being deleted, including tainted ones."""

    nodes: int
    busy_nodes: int  # nodes with a workload pod
    gpus_used: int
    gpus_total: int
    gpus_per_node: int
    # If nodes differ in GPUs: the GPUs of each empty node, in order of removal. None: all nodes have the same number.
    spare: tuple[int, ...] | None = None
    drained_nodes: int = 0  # busy nodes that are being drained: their pods have destinations
    free_nodes: int | None = None  # empty, or with smart pods only; None: all nodes that are not busy
    closed_nodes: int = 0  # empty nodes cordoned by others: kept, accept no pods, and are not spares

    @property
    def needed_nodes(self) -> int:
        """Nodes in use by pods or claims, without drained nodes: their pods move to the counted nodes."""
        in_use = self.busy_nodes if self.free_nodes is None else self.nodes - self.free_nodes
        return max(0, in_use - self.drained_nodes)

    def nodes_with_spare(self, spare: int) -> int:
        """Number of nodes with `spare` free ones."""
        return self.needed_nodes + (spare + self.closed_nodes if spare else 0)


# Limits on launching nodes for pods, and on tainting and deleting empty nodes.
LimitKind = Literal["ScaleUpLimited", "ScaleDownHeld"]


class Limit(msgspec.Struct, frozen=True, gc=False):
    """A constraint that prevents a scaling decision."""

    kind: LimitKind
    reason: Reason


class Marked(msgspec.Struct, frozen=True, gc=False):
    """A surplus node: tainted by reconciler, or only reported if the pool is in Observe mode."""

    node: str
    at: Instant  # time of deletion if the node is empty then
    is_hard: bool = False  # NoSchedule: pods are no longer placed on the node


class SizeEvaluation(msgspec.Struct, frozen=True, gc=False):
    """Evaluation of one NodeProvisioner, before any action."""

    provisioner: str
    pool: str
    use: Use  # nodes that are not being deleted, busy nodes, GPUs
    target: int  # target number of nodes
    reason: Reason  # why this target
    surplus: int = 0  # nodes that scaling is to remove, including tainted ones; without nodes that leave anyway
    leaving: int = 0  # nodes that are leaving: tainted, drained, or disrupted by Karpenter
    leaving_otherwise: int = 0  # of these, nodes that scaling cannot keep: drained, or disrupted by Karpenter
    arriving: int = 0  # machines launched whose nodes have not registered yet
    pods: int = 0  # pending pods to be served here
    missing: int = 0  # nodes that are not requested yet
    marked: tuple[Marked, ...] = ()  # by name
    limits: tuple[Limit, ...] = ()

    @property
    def size(self) -> int:
        return self.use.nodes

    @property
    def tainted(self) -> int:
        """Number of tainted nodes."""
        return len(self.marked)


class ScalingReport(msgspec.Struct, FeatureReport, frozen=True, tag=True):
    """Report of the scaling feature."""

    sizes: tuple[SizeEvaluation, ...] = ()  # each NodeProvisioner that is not suspended, by order and name
