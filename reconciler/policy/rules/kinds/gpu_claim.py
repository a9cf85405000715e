"""GpuClaim: its names, columns and rules; the fields stand in `model.kinds.gpu_claim`."""

from reconciler.model.policy.gpu_claim import GpuClaim
from reconciler.policy.kind import AGE, READY, Column, Kind

GPU_CLAIM = Kind(
    spec=GpuClaim,
    plural="gpuclaims",
    short="gclaim",
    columns=(
        Column("GPUs", "integer", ".spec.devices.count"),
        Column("Model", "string", ".spec.devices.model"),
        Column("Gang", "string", ".spec.gangRef"),
        READY,
        AGE,
    ),
    namespaced=True,
    is_policy=False,
)
