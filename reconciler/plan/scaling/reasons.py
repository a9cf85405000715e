"""Why a pool shall have so many nodes, and why a node is marked, kept, or deleted; or why not."""

from collections.abc import Mapping
from enum import Enum
from typing import Literal

import msgspec

from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit
from reconciler.model.plan.decision import CodeFacts, Facts, Ref
from reconciler.plan.scaling.marks import MarkTime
from reconciler.plan.scaling.size import Claimants, Growth, SizeReason

PLANNER = "scaling"

SizeWhy = SizeReason | Growth  # why a provisioner wants a pool to have so many nodes


class ForPods(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Nodes are lacking for pods."""

    pods: int


class SizedBy(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Nodes are lacking by a field of the provisioner."""

    field: Literal["minSize", "warmNodes"]
    nodes: int


class NextWindow(msgspec.Struct, frozen=True, gc=False):
    """When nodes may be marked; None: no window ever opens."""

    opens: Instant | None = None


class KeptWhile(Enum):
    """What keeps marked nodes."""

    UNREAD = "unread"
    LENT_UNREAD = "lentUnread"
    UNREADY = "unready"
    DEMAND = "demand"
    SUSPENDED = "suspended"
    FROZEN = "frozen"
    OTHERS = "others"  # marks that come off other nodes of the pool


class HeldWhile(msgspec.Struct, frozen=True, gc=False):
    """All that keeps one marked node."""

    causes: tuple[KeptWhile, ...]


# Of a provisioner: the size that it wants, and why.


class TargetSize(CodeFacts, frozen=True):
    template = "{provisioner} keeps {target} of {size} nodes of {pool}: {why}."

    provisioner: Ref
    pool: str
    size: int
    target: int
    why: SizeWhy


class TargetGrows(CodeFacts, frozen=True):
    template = "{provisioner} wants {target:node} of {pool}, which has {size}, for {pods:pod} without a place: {why}."

    provisioner: Ref
    pool: str
    size: int
    target: int
    pods: int
    why: SizeWhy


# Nodes that go.


class SurplusEmptyNode(CodeFacts, frozen=True):
    template = (
        "{node} is empty, and {surplus} of {size} nodes of {pool} are to go: {why}. It is deleted at {time:time} if it "
        "is still empty."
    )
    while_held = "{node} is empty, and {surplus} of {size} nodes of {pool} are to go: {why}."

    node: str
    pool: str
    size: int
    surplus: int
    why: SizeWhy
    time: Instant


class DeletionNear(CodeFacts, frozen=True):
    template = "{node} is to be deleted at {time:time}: from now on pods that do not tolerate it are kept away."
    while_held = "{node} is marked, and pods that do not tolerate it are to be kept away."

    node: str
    time: Instant


class DeletionNearLate(CodeFacts, frozen=True):
    template = (
        "{node} was to be deleted at {before:time}, and pods were not kept away in time: they are now, and it is "
        "deleted at {time:time} if it is still empty."
    )
    while_held = "{node} is marked, and pods that do not tolerate it are to be kept away."

    node: str
    before: Instant
    time: Instant


class EmptyNodeDeleted(CodeFacts, frozen=True):
    template = "{node} is empty, its time was {time:time}, and pods were kept away before: it is deleted."

    node: str
    time: Instant


class MarkedNodeHeld(CodeFacts, frozen=True):
    template = "{node} is empty and marked, its time is {time:time}: it is not deleted for as long as {held}."

    node: str
    time: Instant
    held: HeldWhile


# Nodes that stay.


class MarkedNodeInUse(CodeFacts, frozen=True):
    template = "{node} was to be deleted at {time}, and is in use: it is kept."

    node: str
    time: MarkTime


class MarkedNodeWanted(CodeFacts, frozen=True):
    template = "{node} was to be deleted at {time}, and {pods} without a place would fit on it: it is kept."

    node: str
    time: MarkTime
    pods: Claimants


class NoLongerSurplus(CodeFacts, frozen=True):
    template = (
        "{node} was to be deleted at {time}; {marked} of {size} nodes of {pool} are marked, {surplus} are to go: "
        "{why}. It comes last in order, and is kept."
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
        "{node} was to be deleted at {time}; without the nodes that leave the cluster has {left} of {resource}, "
        "and clusterMin of {policy} is {least}: it is kept."
    )

    node: str
    time: MarkTime
    resource: str
    left: str
    least: str
    policy: Ref


class MarkUnreadable(CodeFacts, frozen=True):
    template = "the taint gpu.scheduling/deletion-time of {node} has no time ({value}): it is taken off."

    node: str
    value: str


class MarkedNodeUnready(CodeFacts, frozen=True):
    template = "{node} was to be deleted at {time}, and is not ready: {policy} removes it instead."

    node: str
    time: MarkTime
    policy: Ref


class EmptyNodeUnready(CodeFacts, frozen=True):
    template = "{node} is empty and not ready: {policy} removes it."

    node: str
    policy: Ref


class NodeJustCame(CodeFacts, frozen=True):
    template = "{node} was to be deleted at {time:time}, and has just come: it is looked at again when it has settled."

    node: str
    time: Instant


class MarkWithoutProvisioner(CodeFacts, frozen=True):
    template = (
        "{node} was to be deleted at {time}, and no NodeProvisioner that is not suspended scales {pool}: it is kept."
    )

    node: str
    pool: str
    time: MarkTime


class NodeOfProvisioner(CodeFacts, frozen=True):
    template = "{node} is scaled by {provisioner}, and does not bear its label yet."

    node: str
    provisioner: Ref


# What keeps a provisioner from doing more.


class CapacityMissing(CodeFacts, frozen=True):
    template = (
        "{provisioner} lacks {nodes:node} of {pool} ({why}): Karpenter buys for the pods it sees, and smart pods ask "
        "it for the others."
    )

    provisioner: Ref
    pool: str
    nodes: int
    why: ForPods | SizedBy


class NoMoreNodes(CodeFacts, frozen=True):
    template = "{pods:pod} without a place in {pool}, and {limit} allows no more nodes."

    pool: str
    pods: int
    limit: CapacityLimit


class PlaceKept(CodeFacts, frozen=True):
    template = (
        "{pod} comes after one that was evicted, and its place on {node} is kept until {time:time}: nothing is bought "
        "for it."
    )

    pod: Ref
    node: Ref
    time: Instant


class DemandFirst(CodeFacts, frozen=True):
    template = "{pool} is to find a place for {pods:pod}: none of its nodes is marked or deleted meanwhile."

    pool: str
    pods: int


class PoolUnready(CodeFacts, frozen=True):
    template = (
        "{unready} of {size} nodes of {pool} are not ready, which is more than 3 and more than 45 %: none is marked or "
        "deleted until that is over."
    )

    pool: str
    size: int
    unready: int


class ScaleDownWindowClosed(CodeFacts, frozen=True):
    template = (
        "{surplus} of {size} nodes of {pool} are to go ({why}), and no window of {provisioner} is open: none is marked "
        "before {time}."
    )

    provisioner: Ref
    pool: str
    size: int
    surplus: int
    why: SizeWhy
    time: NextWindow


class SurplusKeptByClusterMin(CodeFacts, frozen=True):
    template = (
        "{surplus} of {size} nodes of {pool} are to go ({why}), and {marked} can be marked: without another the "
        "cluster has {left} of {resource}, and clusterMin of {policy} is {least}."
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
        "{surplus} of {size} nodes of {pool} are to go ({why}), and {marked} can be marked: the others are in use, "
        "have just come, opt out, or are someone else's affair."
    )

    pool: str
    size: int
    surplus: int
    why: SizeWhy
    marked: int


class ScalingUnread(CodeFacts, frozen=True):
    template = "{why}: how {pool} is used is not known, and none of its nodes is marked or deleted."

    pool: str
    why: Unread


class LentUnread(CodeFacts, frozen=True):
    template = "{why}: which GPUs of {pool} are lent is not known, and none of its nodes is marked or deleted."

    pool: str
    why: Unread


_KEPT_WHILE: Mapping[type[Facts], KeptWhile] = {
    ScalingUnread: KeptWhile.UNREAD,
    LentUnread: KeptWhile.LENT_UNREAD,
    PoolUnready: KeptWhile.UNREADY,
    DemandFirst: KeptWhile.DEMAND,
}


def kept_while(facts: Facts) -> KeptWhile | None:
    """What a hold on a provisioner says of its marked nodes; None where it keeps none."""
    return _KEPT_WHILE.get(type(facts))


# By which nothing is held that was asked for: it waits for its time, or for what holds its provisioner as well.
RESTING: frozenset[type[CodeFacts]] = frozenset({SurplusEmptyNode, MarkedNodeHeld, PlaceKept, EmptyNodeUnready})

# Holds that would be, in a pool that is only observed: what marked nodes wait for, and what a provisioner lacks.
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
