"""NodeProvisioner: its names, columns and rules; the fields stand in `model.kinds.node_provisioner`."""

from reconciler.model.policy.node_provisioner import NodeProvisioner, NodeProvisionerReport
from reconciler.policy.kind import AGE, MESSAGE, READY, Kind, PrinterColumn, ValidationRule

NODE_PROVISIONER = Kind(
    spec=NodeProvisioner,
    plural="nodeprovisioners",
    short="nprov",
    longest_name=63,  # it becomes the value of a label: gpu.scheduling/provisioner
    report=NodeProvisionerReport,
    columns=(
        PrinterColumn("Pool", "string", ".spec.poolName"),
        PrinterColumn("Min", "integer", ".spec.minSize"),
        PrinterColumn("Max", "integer", ".spec.maxSize"),
        PrinterColumn("Utilization", "integer", ".spec.minGPUUtilizationPercent"),
        PrinterColumn("Size", "integer", ".status.currentSize"),
        PrinterColumn("Target", "integer", ".status.targetSize"),
        READY,
        AGE,
        MESSAGE,
    ),
    rules=(
        ValidationRule(
            code="RC201",
            at="minSize",
            sentence="minSize {min_size} is above maxSize {max_size}",
            remedy="lower minSize, or raise maxSize",
            cel="self.minSize <= self.maxSize",
            holds=lambda spec: spec.min_size <= spec.max_size,
        ),
        ValidationRule(
            code="RC202",
            at="minUnutilizedGPUNodes",
            sentence="minUnutilizedGPUNodes {min_unutilized_gpu_nodes} is above maxSize {max_size}",
            remedy="lower minUnutilizedGPUNodes, or raise maxSize",
            cel="self.minUnutilizedGPUNodes <= self.maxSize",
            holds=lambda spec: spec.min_unutilized_gpu_nodes <= spec.max_size,
        ),
        ValidationRule(
            code="RC202",
            at="warmNodes",
            sentence="warmNodes {warm_nodes} is above maxSize {max_size}",
            remedy="lower warmNodes, or raise maxSize",
            cel="self.warmNodes <= self.maxSize",
            holds=lambda spec: spec.warm_nodes <= spec.max_size,
        ),
        ValidationRule(
            code="RC201",
            at="schedules",
            sentence="a schedule asks for more nodes than maxSize {max_size}",
            remedy="lower its minSize and warmNodes, or raise maxSize",
            cel="!has(self.schedules) || self.schedules.all(each, (!has(each.minSize) || each.minSize <= self.maxSize)"
            " && (!has(each.warmNodes) || each.warmNodes <= self.maxSize))",
            holds=lambda spec: all(
                max(each.min_size or 0, each.warm_nodes or 0) <= spec.max_size for each in spec.schedules
            ),
        ),
    ),
)
