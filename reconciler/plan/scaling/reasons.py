"""Why a pool shall have so many nodes, and why a node is marked, kept, or deleted; or why not."""

from reconciler.plan.guards.frozen import Frozen, FrozenUnreadably, PoolSuspended
from reconciler.plan.reasons import Because

PLANNER = "scaling"

# Of a provisioner: the size that it wants, and why.
SIZED = Because("TargetSize", "{provisioner} keeps {target} of {size} nodes of {pool}: {why}.")
GROWS = Because(
    "TargetGrows",
    "{provisioner} wants {nodes} of {pool}, which has {size}, for {pods} without a place: {why}.",
)

# Nodes that go.
SURPLUS = Because(
    "SurplusEmptyNode",
    "{node} is empty, and {surplus} of {size} nodes of {pool} are to go: {why}. It is deleted at {time} if it is still "
    "empty.",
    while_held="{node} is empty, and {surplus} of {size} nodes of {pool} are to go: {why}.",
)
HARDENED = Because(
    "DeletionNear",
    "{node} is to be deleted at {time}: from now on pods that do not tolerate it are kept away.",
    while_held="{node} is marked, and pods that do not tolerate it are to be kept away.",
)
HARDENED_LATE = Because(
    "DeletionNearLate",
    "{node} was to be deleted at {before}, and pods were not kept away in time: they are now, and it is deleted at "
    "{time} if it is still empty.",
    while_held="{node} is marked, and pods that do not tolerate it are to be kept away.",
)
DELETED = Because(
    "EmptyNodeDeleted", "{node} is empty, its time was {time}, and pods were kept away before: it is deleted."
)

MARK_HELD = Because(
    "MarkedNodeHeld", "{node} is empty and marked, its time is {time}: it is not deleted for as long as {held}."
)

# Nodes that stay.
IN_USE = Because("MarkedNodeInUse", "{node} was to be deleted at {time}, and is in use: it is kept.")
WANTED = Because(
    "MarkedNodeWanted", "{node} was to be deleted at {time}, and {pods} without a place would fit on it: it is kept."
)
NO_SURPLUS = Because(
    "NoLongerSurplus",
    "{node} was to be deleted at {time}; {marked} of {size} nodes of {pool} are marked, {surplus} are to go: {why}. "
    "It comes last in order, and is kept.",
)
NEEDED_FOR_CLUSTER_MIN = Because(
    "NeededForClusterMin",
    "{node} was to be deleted at {time}; without the nodes that leave the cluster has {left} of {resource}, and "
    "clusterMin of {policy} is {least}: it is kept.",
)
UNREADABLE = Because(
    "MarkUnreadable", "the taint gpu.scheduling/deletion-time of {node} has no time ({value}): it is taken off."
)
UNREADY_MARKED = Because(
    "MarkedNodeUnready", "{node} was to be deleted at {time}, and is not ready: {policy} removes it instead."
)
UNREADY_LEFT = Because("EmptyNodeUnready", "{node} is empty and not ready: {policy} removes it.")
JUST_CAME = Because(
    "NodeJustCame", "{node} was to be deleted at {time}, and has just come: it is looked at again when it has settled."
)

UNSCALED = Because(
    "MarkWithoutProvisioner",
    "{node} was to be deleted at {time}, and no NodeProvisioner that is not suspended scales {pool}: it is kept.",
)

LABELLED = Because("NodeOfProvisioner", "{node} is scaled by {provisioner}, and does not bear its label yet.")

# What keeps a provisioner from doing more.
MISSING = Because(
    "CapacityMissing",
    "{provisioner} lacks {nodes} of {pool} ({why}): Karpenter buys for the pods it sees, and smart pods ask it for the "
    "others.",
)
AT_MOST = Because("NoMoreNodes", "{pods} without a place in {pool}, and {limit} allows no more nodes.")
PLACE_KEPT = Because(
    "PlaceKept",
    "{pod} comes after one that was evicted, and its place on {node} is kept until {time}: nothing is bought for it.",
)
DEMAND_FIRST = Because(
    "DemandFirst", "{pool} is to find a place for {pods}: none of its nodes is marked or deleted meanwhile."
)
BRAKE = Because(
    "PoolUnready",
    "{unready} of {size} nodes of {pool} are not ready, which is more than 3 and more than 45 %: none is marked or "
    "deleted until that is over.",
)
WINDOW_CLOSED = Because(
    "ScaleDownWindowClosed",
    "{surplus} of {size} nodes of {pool} are to go ({why}), and no window of {provisioner} is open: none is marked "
    "before {time}.",
)
CLUSTER_MIN_KEEPS = Because(
    "SurplusKeptByClusterMin",
    "{surplus} of {size} nodes of {pool} are to go ({why}), and {marked} can be marked: without another the cluster "
    "has {left} of {resource}, and clusterMin of {policy} is {least}.",
)
NOT_EMPTY = Because(
    "SurplusInUse",
    "{surplus} of {size} nodes of {pool} are to go ({why}), and {marked} can be marked: the others are in use, have "
    "just come, opt out, or are someone else's affair.",
)
UNREAD = Because("ScalingUnread", "{why}: how {pool} is used is not known, and none of its nodes is marked or deleted.")
LENT_UNREAD = Because(
    "LentUnread", "{why}: which GPUs of {pool} are lent is not known, and none of its nodes is marked or deleted."
)

# What keeps marked nodes, by the code of its reason, as a sentence goes on with it.
KEPT_WHILE = {
    UNREAD.code: "it is not known how its pool is used",
    LENT_UNREAD.code: "it is not known which GPUs are lent",
    BRAKE.code: "much of its pool is not ready",
    DEMAND_FIRST.code: "its pool is to find a place for pods",
    PoolSuspended.__name__: "its pool is suspended",
    Frozen.__name__: "it is frozen",
    FrozenUnreadably.__name__: "it is frozen",
}

REASONS = (
    SIZED,
    GROWS,
    SURPLUS,
    HARDENED,
    HARDENED_LATE,
    DELETED,
    MARK_HELD,
    IN_USE,
    WANTED,
    NO_SURPLUS,
    NEEDED_FOR_CLUSTER_MIN,
    UNREADABLE,
    UNREADY_MARKED,
    UNREADY_LEFT,
    JUST_CAME,
    UNSCALED,
    LABELLED,
    MISSING,
    AT_MOST,
    PLACE_KEPT,
    DEMAND_FIRST,
    BRAKE,
    WINDOW_CLOSED,
    CLUSTER_MIN_KEEPS,
    NOT_EMPTY,
    UNREAD,
    LENT_UNREAD,
)

# By which nothing is held that was asked for: it waits for its time, or for what holds its provisioner as well.
RESTING = frozenset({SURPLUS.code, MARK_HELD.code, PLACE_KEPT.code, UNREADY_LEFT.code})

# Holds that would be, in a pool that is only observed: what marked nodes wait for, and what a provisioner lacks.
SUPPOSED = frozenset(
    each.code for each in (SURPLUS, MARK_HELD, JUST_CAME, MISSING, WINDOW_CLOSED, CLUSTER_MIN_KEEPS, NOT_EMPTY)
)
