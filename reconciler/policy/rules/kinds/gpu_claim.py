"""GpuClaim: its names, columns and rules; the fields stand in `model.kinds.gpu_claim`."""

from reconciler.model.policy.gpu_claim import GpuClaim
from reconciler.policy.kind import AGE, READY, Kind, PrinterColumn

GPU_CLAIM = Kind(
    spec=GpuClaim,
    plural="gpuclaims",
    short="gclaim",
    columns=(
        PrinterColumn("GPUs", "integer", ".spec.devices.count"),
        PrinterColumn("Model", "string", ".spec.devices.model"),
        PrinterColumn("Gang", "string", ".spec.gangRef"),
        READY,
        AGE,
    ),
    namespaced=True,
    is_policy=False,
)
