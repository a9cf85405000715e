"""The gpu feature: GPUs that are lent to pods, until the pods end, and what people see of GpuClaims."""

from reconciler.model import names
from reconciler.plan.feature.feature import Feature, declared_in
from reconciler.plan.feature.write_rights import APPLY_AND_DELETE, Enforced, WriteRight, where_acted_on
from reconciler.plan.gpu import reasons
from reconciler.plan.gpu.claim_report import ClaimReport
from reconciler.plan.gpu.gauges import GAUGES
from reconciler.plan.gpu.planner import gpu


def _leases(enforced: Enforced) -> set[str]:
    """The namespace holds nothing else, so RBAC limits this right sufficiently."""
    return {names.LEASES_NAMESPACE} if enforced.is_any or enforced.pools else set()


FEATURE = Feature(
    name=reasons.PLANNER,
    plan=gpu,
    needs=("nodes", "pods"),  # without Leases nothing is released, and scaling says so
    report=ClaimReport,
    gauges=GAUGES,
    reasons=declared_in(reasons),
    rights=(
        WriteRight(
            _leases,
            "coordination.k8s.io",
            ("leases",),
            APPLY_AND_DELETE,
            "Lend GPUs to pods with a GpuClaim, and release GPUs of pods that have ended.",
        ),
        WriteRight(
            where_acted_on,
            "",
            ("pods/binding",),
            ("create",),
            "Bind pods that name the scheduler gpu-scheduler, together with their GPUs.",
        ),
        WriteRight(
            where_acted_on,
            "gpu.scheduling",
            ("gpuclaims/status",),
            ("patch",),
            "Status of each GpuClaim: its pods, their GPUs, and what waiting pods wait for.",
        ),
    ),
    pod_annotations=(names.RELEASING,),
)
