"""Objects rendered from pools' templates, mainly NodePools, kept as declared."""

from collections.abc import Callable

from reconciler.model.manifest_rules import PRIORITY_CLASS
from reconciler.model.right import RightLimits
from reconciler.plan.feature.feature import Feature, declared_in
from reconciler.plan.feature.write_rights import (
    APPLY_AND_DELETE,
    LEFT_BEHIND,
    OWN_OBJECTS,
    Enforced,
    WriteRight,
    where_left_by_older_versions,
)
from reconciler.plan.manifests import reasons
from reconciler.plan.manifests.planner import manifests

NODE_POOLS = RightLimits("write NodePools that are marked as its own", labels=OWN_OBJECTS, adopts=True)
PRIORITY_CLASSES = RightLimits(
    "write PriorityClasses of its own, none above the workloads and none the default",
    labels=OWN_OBJECTS,
    keeps_as=PRIORITY_CLASS,
)


def _yielded(kind: str) -> Callable[[Enforced], set[str]]:
    """Namespaces in which templates render objects of a kind."""

    def asked_for(enforced: Enforced) -> set[str]:
        return {""} if enforced.is_any or any(each.kind == kind for each in enforced.manifests) else set()

    return asked_for


FEATURE = Feature(
    name=reasons.PLANNER,
    plan=manifests,
    needs=("node_pools", "kept"),
    reasons=declared_in(reasons),
    words=reasons.WORDS,
    parts=reasons.PARTS,
    rights=(
        WriteRight(
            _yielded("NodePool"),
            "karpenter.sh",
            ("nodepools",),
            APPLY_AND_DELETE,
            "NodePools rendered from templates.",
            NODE_POOLS,
        ),
        WriteRight(
            _yielded("PriorityClass"),
            "scheduling.k8s.io",
            ("priorityclasses",),
            APPLY_AND_DELETE,
            "The PriorityClass of smart pods, below all others; and those rendered from templates.",
            PRIORITY_CLASSES,
        ),
        WriteRight(
            where_left_by_older_versions,
            "policy",
            ("poddisruptionbudgets",),
            ("delete",),
            "PodDisruptionBudgets rendered from templates of an older version.",
            LEFT_BEHIND,
        ),
    ),
)
