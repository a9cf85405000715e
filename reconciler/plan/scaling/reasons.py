"""Reasons of scaling: the wanted size of a pool, and why nodes are marked, kept or deleted."""

from collections.abc import Mapping
from enum import Enum
from typing import Literal

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit
from reconciler.model.plan.decision import CodeFacts, Facts, Ref
from reconciler.model.policy.scaling import RaisingField
from reconciler.plan.scaling.marks import MarkTime
from reconciler.plan.scaling.size import Claimants, Growth, SizeReason

PLANNER = "scaling"

SizeWhy = SizeReason | Growth  # why a provisioner wants this number of nodes


class ForPods(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Nodes are missing for waiting pods."""

    pods: int


class SizedBy(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Nodes are missing because of a field of the provisioner."""

    field: RaisingField | Literal["warmNodes"]
    nodes: int


class NextWindow(msgspec.Struct, frozen=True, gc=False):
    """When nodes may be marked; None: no window ever opens."""

    opens: Instant | None = None


class KeptWhile(Enum):
    """Why marked nodes are not deleted."""

    UNREAD = "unread"
    LENT_UNREAD = "lentUnread"
    UNREADY = "unready"
    DEMAND = "demand"
    SUSPENDED = "suspended"
    FROZEN = "frozen"
    OTHERS = "others"  # marks that are removed from other nodes of the pool first


class HeldWhile(msgspec.Struct, frozen=True, gc=False):
    """All causes that keep one marked node."""

    causes: tuple[KeptWhile, ...]


# Reasons of a provisioner: its wanted size.


class TargetSize(CodeFacts, frozen=True):
    template = "{provisioner} keeps {target} of {size} nodes of {pool}: {why}."

    provisioner: Ref
    pool: str
    size: int
    target: int
    why: SizeWhy


class TargetGrows(CodeFacts, frozen=True):
    template = "{provisioner} needs {target:node} in {pool}, which has {size}, for {pods:pod} without a node: {why}."

    provisioner: Ref
    pool: str
    size: int
    target: int
    pods: int
    why: SizeWhy


# Reasons of surplus nodes.


class SurplusEmptyNode(CodeFacts, frozen=True):
    template = (
        "{node} is empty. {pool} has {size:node}, {surplus} of them surplus: {why}. The node is deleted at {time:time} "
        "if it is still empty."
    )
    while_held = "{node} is empty. {pool} has {size:node}, {surplus} of them surplus: {why}."

    node: str
    pool: str
    size: int
    surplus: int
    why: SizeWhy
    time: Instant


class DeletionNear(CodeFacts, frozen=True):
    template = "{node} is deleted at {time:time}: from now on the taint keeps pods away."
    while_held = "{node} is marked for deletion, and its taint must keep pods away."

    node: str
    time: Instant


class DeletionNearLate(CodeFacts, frozen=True):
    template = (
        "{node} was marked for deletion at {before:time}, but pods were not kept away in time: pods are kept away "
        "now, and the node is deleted at {time:time} if it is still empty."
    )
    while_held = "{node} is marked for deletion, and its taint must keep pods away."

    node: str
    before: Instant
    time: Instant


class EmptyNodeDeleted(CodeFacts, frozen=True):
    template = (
        "{node} is empty, its deletion time was {time:time}, and pods were kept away before: the node is deleted."
    )

    node: str
    time: Instant


class MarkedNodeHeld(CodeFacts, frozen=True):
    template = "{node} is empty, and marked for deletion at {time:time}: the node is not deleted while {held}."

    node: str
    time: Instant
    held: HeldWhile


# Reasons of nodes that stay.


class MarkedNodeInUse(CodeFacts, frozen=True):
    template = "{node} was marked for deletion at {time}, but is in use: the node is kept."

    node: str
    time: MarkTime


class MarkedNodeWanted(CodeFacts, frozen=True):
    template = "{node} was marked for deletion at {time}, but {pods} without a node fit on {node}: the node is kept."

    node: str
    time: MarkTime
    pods: Claimants


class NoLongerSurplus(CodeFacts, frozen=True):
    template = (
        "{node} was marked for deletion at {time}, but {marked} of {size} nodes of {pool} are marked, and only "
        "{surplus} are surplus: {why}. The node is last in removal order, and is kept."
    )

    node: str
    pool: str
    size: int
    surplus: int
    why: SizeWhy
    time: MarkTime
    marked: int


class NeededForClusterMin(CodeFacts, frozen=True):
    template = (
        "{node} was marked for deletion at {time}, but without the leaving nodes the cluster has {left} {resource}, "
        "less than clusterMin {least} of {policy}: the node is kept."
    )

    node: str
    time: MarkTime
    resource: str
    left: str
    least: str
    policy: Ref


class MarkUnreadable(CodeFacts, frozen=True):
    template = "the taint gpu.scheduling/deletion-time of {node} has no readable time ({value}): the taint is removed."

    node: str
    value: str


class MarkedNodeUnready(CodeFacts, frozen=True):
    template = "{node} was marked for deletion at {time}, but is not ready: {policy} removes the node instead."

    node: str
    time: MarkTime
    policy: Ref


class EmptyNodeUnready(CodeFacts, frozen=True):
    template = "{node} is empty and not ready: {policy} removes the node."

    node: str
    policy: Ref


class NodeJustCame(CodeFacts, frozen=True):
    template = (
        "{node} was marked for deletion at {time:time}, but is new: the node is evaluated again when it has settled."
    )

    node: str
    time: Instant


class MarkWithoutProvisioner(CodeFacts, frozen=True):
    template = (
        "{node} was marked for deletion at {time}, but no active NodeProvisioner scales {pool}: the node is kept."
    )

    node: str
    pool: str
    time: MarkTime


class NodeOfProvisioner(CodeFacts, frozen=True):
    template = f"{{node}} gets the label {names.PROVISIONER}, because {{provisioner}} scales the pool of the node."

    node: str
    provisioner: Ref


# Reasons that limit a provisioner.


class CapacityMissing(CodeFacts, frozen=True):
    template = (
        "{pool} lacks {nodes:node} that {provisioner} requires ({why}). Karpenter launches nodes for unschedulable "
        "pods by itself, and smart pods request the other nodes."
    )

    provisioner: Ref
    pool: str
    nodes: int
    why: ForPods | SizedBy


class NoMoreNodes(CodeFacts, frozen=True):
    template = "{pool} has no node for {pods:pod}, and {limit} allows no more nodes."

    pool: str
    pods: int
    limit: CapacityLimit


class PlaceKept(CodeFacts, frozen=True):
    template = (
        "{pod} is the successor of an evicted pod, and {node} is reserved for the pod until {time:time}: no node is "
        "bought for the pod."
    )

    pod: Ref
    node: Ref
    time: Instant


class DemandFirst(CodeFacts, frozen=True):
    template = "{pool} must serve {pods:pod} without a node: no node of the pool is marked or deleted meanwhile."

    pool: str
    pods: int


class PoolUnready(CodeFacts, frozen=True):
    template = (
        "{unready} of {size} nodes of {pool} are not ready, more than 3 and more than 45 %: no node of the pool is "
        "marked or deleted until more nodes are ready."
    )

    pool: str
    size: int
    unready: int


class ScaleDownWindowClosed(CodeFacts, frozen=True):
    template = (
        "{pool} has {size:node}, {surplus} of them surplus ({why}), and no window of {provisioner} is open: no node is "
        "marked before {time}."
    )

    provisioner: Ref
    pool: str
    size: int
    surplus: int
    why: SizeWhy
    time: NextWindow


class SurplusKeptByClusterMin(CodeFacts, frozen=True):
    template = (
        "{pool} has {size:node}, {surplus} of them surplus ({why}), and {marked} of the surplus nodes can be marked: "
        "after the removal of one more node, the cluster would have {left} {resource}, less than clusterMin {least} of "
        "{policy}."
    )

    pool: str
    size: int
    surplus: int
    why: SizeWhy
    marked: int
    resource: str
    left: str
    least: str
    policy: Ref


class SurplusInUse(CodeFacts, frozen=True):
    template = (
        "{pool} has {size:node}, {surplus} of them surplus ({why}), and {marked} of the surplus nodes can be marked: "
        "other nodes are in use, are new, opt out, or are held by other tools."
    )

    pool: str
    size: int
    surplus: int
    why: SizeWhy
    marked: int


class ScalingUnread(CodeFacts, frozen=True):
    template = "the utilization of {pool} is unknown ({why}), so no node of the pool is marked or deleted."

    pool: str
    why: Unread


class LentUnread(CodeFacts, frozen=True):
    template = "the lent GPUs of {pool} are unknown ({why}), so no node of the pool is marked or deleted."

    pool: str
    why: Unread


_KEPT_WHILE: Mapping[type[Facts], KeptWhile] = {
    ScalingUnread: KeptWhile.UNREAD,
    LentUnread: KeptWhile.LENT_UNREAD,
    PoolUnready: KeptWhile.UNREADY,
    DemandFirst: KeptWhile.DEMAND,
}


def kept_while(facts: Facts) -> KeptWhile | None:
    """Why the provisioner's marked nodes are kept, from the reason of its hold; None if the hold keeps none."""
    return _KEPT_WHILE.get(type(facts))


# Holds that hold back no request: they wait for a time, or for the end of another hold on the provisioner.
RESTING: frozenset[type[CodeFacts]] = frozenset({SurplusEmptyNode, MarkedNodeHeld, PlaceKept, EmptyNodeUnready})

# Holds that are simulated in an observed pool: what marked nodes wait for, and what a provisioner lacks.
SUPPOSED: frozenset[type[CodeFacts]] = frozenset(
    {
        SurplusEmptyNode,
        MarkedNodeHeld,
        NodeJustCame,
        CapacityMissing,
        ScaleDownWindowClosed,
        SurplusKeptByClusterMin,
        SurplusInUse,
    }
)
