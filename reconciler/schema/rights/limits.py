"""Of which objects, and of what of them, the controller's rights to write are: beside what RBAC can say.

Keys are listed where a feature writes them, and not by our domain alone: who holds the token of the controller must not
let itself pass a freeze, or write what a pod is lent.
"""

from reconciler.model import names
from reconciler.model.manifest_rules.kinds import PRIORITY_CLASS, SMART_POD
from reconciler.model.manifest_rules.smart_pod import LABELS
from reconciler.schema.rights.right import Changes, Limits

_MANAGED = ((names.MANAGED, "true"),)
# By these a node is of a pool. The controller writes neither, so no other node becomes one.
_OF_A_POOL = (names.KARPENTER_POOL, names.POOL)

LEADERSHIP = Limits("write the Lease of the leader", names=(names.LEADER_LEASE,))
MEMORY = Limits("write its own ConfigMaps", names=("reconciler-",))
EVENTS = Limits("write Events of its own", fields=((("reportingController",), names.EVENT_SOURCE),))
NODE_CHANGES = Limits(
    "change its own taints and labels, on nodes of pools",
    any_label=_OF_A_POOL,
    changes=Changes(labels=(names.OURS,), kept_labels=(names.POOL,), taints=names.OURS),
)
NODE_DELETIONS = Limits("delete nodes of pools", any_label=_OF_A_POOL)
SMART_PODS = Limits("make and delete smart pods, in the restricted form", labels=LABELS, made_as=SMART_POD)
LEFT_BEHIND = Limits("delete what an older version made", labels=_MANAGED)
POD_CHANGES = Limits(
    "take its own scheduling gate off, and write its own annotations",
    changes=Changes(
        annotations=(
            names.WAITS_FOR,
            names.EVICT_AT,
            names.PHASE,
            names.RETRIES,
            names.NODE_CLAIM,
            names.SINCE,
            names.ORIGINAL_REQUEST,
        ),
        gates=names.OURS,
    ),
)
NODE_POOLS = Limits("write NodePools that are marked as its own", labels=_MANAGED, adopts=True)
PRIORITY_CLASSES = Limits(
    "write PriorityClasses of its own, none above the workloads and none the default",
    labels=_MANAGED,
    keeps_as=PRIORITY_CLASS,
)
