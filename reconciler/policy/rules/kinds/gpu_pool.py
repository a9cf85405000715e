"""GpuPool: its names, columns and rules; the fields stand in `model.kinds.gpu_pool`."""

from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.policy.kind import AGE, MESSAGE, READY, Kind, PrinterColumn, ValidationRule

GPU_POOL = Kind(
    spec=GpuPool,
    plural="gpupools",
    short="gpool",
    longest_name=63,  # it becomes the value of a label: gpu.scheduling/pool, and karpenter.sh/nodepool
    columns=(
        PrinterColumn("Model", "string", ".spec.devices.model"),
        PrinterColumn("GPUs", "integer", ".spec.devices.count"),
        PrinterColumn("Mode", "string", ".spec.mode"),
        READY,
        AGE,
        MESSAGE,
    ),
    rules=(
        ValidationRule(
            code="RC207",
            at="disruption.budgets",
            sentence="a budget has a schedule and a duration, or neither: one of them has only one",
            remedy="give the budget both, or take the other one out",
            cel="self.disruption.budgets.all(b, has(b.schedule) == has(b.duration))",
            holds=lambda spec: all(
                (each.schedule is None) == (each.duration is None) for each in spec.disruption.budgets
            ),
        ),
    ),
)
