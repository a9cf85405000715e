"""GpuNodeStatus: its names, columns and rules; the fields stand in `model.kinds.gpu_node_status`."""

from reconciler.model.policy.gpu_node_status import GpuNodeReport, GpuNodeStatus
from reconciler.policy.kind import AGE, READY, Kind

GPU_NODE_STATUS = Kind(
    spec=GpuNodeStatus,
    plural="gpunodestatuses",
    short="gnode",
    columns=(READY, AGE),
    is_policy=False,
    report=GpuNodeReport,
)
