"""The smart pod feature: requests for capacity that Karpenter can't see, and capacity gates of waiting pods."""

from reconciler.model import names
from reconciler.model.manifest_rules import LABELS, SMART_POD
from reconciler.model.plan.capacity import CapacityReport
from reconciler.model.right import RightLimits
from reconciler.plan.feature.feature import Feature, declared_in
from reconciler.plan.feature.write_rights import LEFT_BEHIND, Enforced, WriteRight, where_left_by_older_versions
from reconciler.plan.smart_pods import reasons, release
from reconciler.plan.smart_pods.invariants import INVARIANTS
from reconciler.plan.smart_pods.planner import smart_pods

SMART_PODS = RightLimits("create and delete smart pods, in the restricted form", labels=LABELS, made_as=SMART_POD)


def _smart_pods(enforced: Enforced) -> set[str]:
    """Namespaces of the pools' smart pods; without policies, the default namespace."""
    named = {pool.spec.smart_pods.namespace for pool in enforced.pools}
    return {names.SMART_PODS_NAMESPACE} if enforced.is_any else named


FEATURE = Feature(
    name=reasons.PLANNER,
    plan=smart_pods,
    needs=("nodes", "pods", "node_claims", "node_pools"),
    report=CapacityReport,
    reasons=declared_in(reasons, release),
    words=reasons.WORDS,
    rights=(
        WriteRight(
            _smart_pods,
            "",
            ("pods",),
            ("create", "delete"),
            "Create smart pods to request nodes from Karpenter, and delete them when the node is ready or none comes.",
            SMART_PODS,
        ),
        WriteRight(
            where_left_by_older_versions,
            "",
            ("pods",),
            ("delete",),
            "Delete smart pods that an older version created in the namespace of the controller.",
            LEFT_BEHIND,
        ),
    ),
    pod_annotations=(
        names.WAITS_FOR,
        names.PHASE,
        names.RETRIES,
        names.NODE_CLAIM,
        names.SINCE,
        names.ORIGINAL_REQUEST,
    ),
    release=(release.gates,),
    invariants=INVARIANTS,
)
