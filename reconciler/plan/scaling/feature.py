"""The scaling feature: the size of pools with a NodeProvisioner, surplus nodes, and missing nodes."""

from reconciler.model.plan.evaluation import ScalingReport
from reconciler.model.right import RightLimits
from reconciler.plan.feature.feature import Feature, declared_in
from reconciler.plan.feature.write_rights import NODES_OF_POOLS, Enforced, WriteRight
from reconciler.plan.scaling import reasons, words
from reconciler.plan.scaling.planner import scaling

NODE_DELETIONS = RightLimits("delete nodes of pools", any_label=NODES_OF_POOLS)


def _scaled(enforced: Enforced) -> set[str]:
    """The namespaces of the right: all, if any pool is scaled or drained."""
    return {""} if enforced.is_any or enforced.scaled or enforced.drained else set()


FEATURE = Feature(
    name=reasons.PLANNER,
    plan=scaling,
    needs=("nodes", "pods", "node_claims"),
    report=ScalingReport,
    reasons=declared_in(reasons),
    words=words.WORDS,
    rights=(
        WriteRight(
            _scaled,
            "",
            ("nodes",),
            ("delete",),
            "Delete empty nodes of scaled and drained pools.",
            NODE_DELETIONS,
        ),
    ),
)
