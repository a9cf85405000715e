"""DrainPolicy: its names, columns and rules; the fields stand in `model.kinds.drain_policy`."""

from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.policy.kind import AGE, MESSAGE, READY, Column, Kind, Rule

DRAIN_POLICY = Kind(
    spec=DrainPolicy,
    plural="drainpolicies",
    short="drainp",
    columns=(
        Column("Pools", "string", ".spec.poolNames"),
        Column("Threshold", "integer", ".spec.utilizationThresholdPercent"),
        Column("Drains", "integer", ".spec.maxDrainParallelism"),
        READY,
        AGE,
        MESSAGE,
    ),
    rules=(
        Rule(
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
