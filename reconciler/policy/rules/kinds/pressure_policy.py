"""PressurePolicy: its names, columns and rules; the fields stand in `model.kinds.pressure_policy`."""

from reconciler.model.policy.pressure_policy import PressurePolicy
from reconciler.policy.kind import AGE, MESSAGE, READY, Kind, PrinterColumn, ValidationRule

PRESSURE_POLICY = Kind(
    spec=PressurePolicy,
    plural="pressurepolicies",
    short="pressp",
    columns=(
        PrinterColumn("Pools", "string", ".spec.poolNames"),
        PrinterColumn("Migration", "string", ".spec.migration"),
        READY,
        AGE,
        MESSAGE,
    ),
    rules=(
        ValidationRule(
            code="RC204",
            at="computeUnit",
            sentence="computeUnit and resources name different resources",
            remedy="give each resource its bounds and its share of the compute unit",
            cel="self.resources.all(r, r in self.computeUnit) && self.computeUnit.all(r, r in self.resources)",
            holds=lambda spec: set(spec.resources) == set(spec.compute_unit),
        ),
    ),
)
