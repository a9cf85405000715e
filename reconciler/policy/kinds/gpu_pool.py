"""GpuPool: its names, columns and rules; the fields stand in `model.kinds.gpu_pool`."""

from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.policy.kind import AGE, MESSAGE, READY, Column, Kind

GPU_POOL = Kind(
    spec=GpuPool,
    plural="gpupools",
    short="gpool",
    longest_name=63,  # it becomes the value of a label: gpu.scheduling/pool, and karpenter.sh/nodepool
    columns=(
        Column("Model", "string", ".spec.devices.model"),
        Column("GPUs", "integer", ".spec.devices.count"),
        Column("Mode", "string", ".spec.mode"),
        READY,
        AGE,
        MESSAGE,
    ),
)
