"""DrainPolicy: its names, columns and rules; the fields stand in `model.kinds.drain_policy`."""

from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.policy.kind import AGE, MESSAGE, READY, Kind, PrinterColumn, ValidationRule

DRAIN_POLICY = Kind(
    spec=DrainPolicy,
    plural="drainpolicies",
    short="drainp",
    columns=(
        PrinterColumn("Pools", "string", ".spec.poolNames"),
        PrinterColumn("Threshold", "integer", ".spec.utilizationThresholdPercent"),
        PrinterColumn("Drains", "integer", ".spec.maxDrainParallelism"),
        READY,
        AGE,
        MESSAGE,
    ),
    rules=(
        ValidationRule(
            code="RC203",
            at="maxDrainParallelism",
            sentence="maxDrainParallelism {max_drain_parallelism} is above maxScaleDownParallelism "
            "{max_scale_down_parallelism}, which counts it too",
            remedy="lower maxDrainParallelism, or raise maxScaleDownParallelism",
            cel="self.maxDrainParallelism <= self.maxScaleDownParallelism",
            holds=lambda spec: spec.max_drain_parallelism <= spec.max_scale_down_parallelism,
        ),
    ),
)
