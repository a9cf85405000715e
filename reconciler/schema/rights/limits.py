"""Of which objects, and of what of them, the controller's rights to write are: beside what RBAC can say.

Keys are listed where a feature writes them, and not by our domain alone: who holds the token of the controller must not
let itself pass a freeze, or write what a pod is lent.
"""

from reconciler.model import names
from reconciler.model.right import Changes, RightLimits
from reconciler.plan.feature.write_rights import NODES_OF_POOLS
from reconciler.plan.features import FEATURES

LEADERSHIP = RightLimits("write the Lease of the leader", names=(names.LEADER_LEASE,))
MEMORY = RightLimits("write its own ConfigMaps", names=("reconciler-",))
EVENTS = RightLimits("write Events of its own", fields=((("reportingController",), names.EVENT_SOURCE),))
NODE_CHANGES = RightLimits(
    "change its own taints and labels, on nodes of pools",
    any_label=NODES_OF_POOLS,
    changes=Changes(labels=(names.OURS,), kept_labels=(names.POOL,), taints=names.OURS),
)
POD_CHANGES = RightLimits(
    "take its own scheduling gate off, and write its own annotations",
    changes=Changes(
        annotations=tuple(key for feature in FEATURES for key in feature.pod_annotations),
        gates=names.OURS,
    ),
)
