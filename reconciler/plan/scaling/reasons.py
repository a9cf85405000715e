"""Why a pool shall have so many nodes, and why a node is marked, kept, or deleted; or why not."""

from reconciler.plan.reasons import Because

PLANNER = "scaling"

# Of a provisioner: the size that it wants, and why.
SIZED = Because("TargetSize", "{provisioner} keeps {target} of {size} nodes of {pool}: {why}.")
GROWS = Because(
    "TargetGrows",
    "{provisioner} wants {target} nodes of {pool}, which has {size}, for {pods} that find no place: {why}.",
)

# Nodes that go.
SURPLUS = Because(
    "SurplusEmptyNode",
    "{node} is empty, and {surplus} of {size} nodes of {pool} are to go: {why}. It is deleted at {time} if it is still "
    "empty.",
)
HARDENED = Because(
    "DeletionNear", "{node} is to be deleted at {time}: from now on pods that do not tolerate it are kept away."
)
HARDENED_LATE = Because(
    "DeletionNearLate",
    "{node} was to be deleted at {before}, and pods were not kept away in time: they are now, and it is deleted at "
    "{time} if it is still empty.",
)
DELETED = Because(
    "EmptyNodeDeleted", "{node} is empty, its time was {time}, and pods were kept away before: it is deleted."
)

# Nodes that stay.
IN_USE = Because("MarkedNodeInUse", "{node} was to be deleted at {time}, and is in use: it is kept.")
WANTED = Because("MarkedNodeWanted", "{node} was to be deleted at {time}, and {pods} that wait fit on it: it is kept.")
NO_SURPLUS = Because(
    "NoLongerSurplus",
    "{node} was to be deleted at {time}; {marked} of {size} nodes of {pool} are marked, {surplus} are to go: {why}. "
    "It comes last in order, and is kept.",
)
UNREADABLE = Because(
    "MarkUnreadable", "the taint gpu.scheduling/deletion-time of {node} has no time ({value}): it is taken off."
)
JUST_CAME = Because(
    "NodeJustCame", "{node} was to be deleted at {time}, and has just come: it is looked at again when it has settled."
)

LABELLED = Because("NodeOfProvisioner", "{node} is scaled by {provisioner}, and does not bear its label yet.")

# What keeps a provisioner from doing more.
MISSING = Because(
    "CapacityMissing",
    "{provisioner} lacks {nodes} of {pool} ({why}): Karpenter buys for the pods it sees, and nothing else asks it.",
)
AT_MOST = Because("NoMoreNodes", "{pods} find no place in {pool}, and {limit} allows no more nodes: they wait.")
DEMAND_FIRST = Because(
    "DemandFirst", "{pods} wait for nodes of {pool}: none of its nodes is marked or deleted meanwhile."
)
BRAKE = Because(
    "PoolUnready",
    "{unready} of {size} nodes of {pool} are not ready, which is more than 3 and more than 45 %: none is marked or "
    "deleted until that is over.",
)
NOT_EMPTY = Because(
    "SurplusInUse",
    "{surplus} of {size} nodes of {pool} are to go ({why}), and {marked} can be marked: the others are in use, have "
    "just come, or are someone else's affair.",
)
UNREAD = Because("ScalingUnread", "{why}: how {pool} is used is not known, and none of its nodes is marked or deleted.")

REASONS = (
    SIZED,
    GROWS,
    SURPLUS,
    HARDENED,
    HARDENED_LATE,
    DELETED,
    IN_USE,
    WANTED,
    NO_SURPLUS,
    UNREADABLE,
    JUST_CAME,
    LABELLED,
    MISSING,
    AT_MOST,
    DEMAND_FIRST,
    BRAKE,
    NOT_EMPTY,
    UNREAD,
)
