"""NodeProvisioner: its names, columns and rules; the fields stand in `model.kinds.node_provisioner`."""

from reconciler.model.kinds.node_provisioner import NodeProvisioner, NodeProvisionerReport
from reconciler.policy.kind import AGE, MESSAGE, READY, Column, Kind, Rule

NODE_PROVISIONER = Kind(
    spec=NodeProvisioner,
    plural="nodeprovisioners",
    short="nprov",
    longest_name=63,  # it becomes the value of a label: gpu.scheduling/provisioner
    report=NodeProvisionerReport,
    columns=(
        Column("Pool", "string", ".spec.poolName"),
        Column("Min", "integer", ".spec.minSize"),
        Column("Max", "integer", ".spec.maxSize"),
        Column("Utilization", "integer", ".spec.minGPUUtilizationPercent"),
        Column("Size", "integer", ".status.currentSize"),
        Column("Target", "integer", ".status.targetSize"),
        READY,
        AGE,
        MESSAGE,
    ),
    rules=(
        Rule(
            code="RC201",
            at="minSize",
            sentence="minSize {min_size} is above maxSize {max_size}",
            remedy="lower minSize, or raise maxSize",
            cel="self.minSize <= self.maxSize",
            holds=lambda spec: spec.min_size <= spec.max_size,
        ),
        Rule(
            code="RC202",
            at="minUnutilizedGPUNodes",
            sentence="minUnutilizedGPUNodes {min_unutilized_gpu_nodes} is above maxSize {max_size}",
            remedy="lower minUnutilizedGPUNodes, or raise maxSize",
            cel="self.minUnutilizedGPUNodes <= self.maxSize",
            holds=lambda spec: spec.min_unutilized_gpu_nodes <= spec.max_size,
        ),
    ),
)
