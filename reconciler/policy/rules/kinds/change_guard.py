"""ChangeGuard: its names, columns and rules; the fields stand in `model.kinds.change_guard`."""

from reconciler.model.policy.change_guard import ChangeGuard
from reconciler.policy.kind import AGE, MESSAGE, READY, Kind, PrinterColumn

CHANGE_GUARD = Kind(
    spec=ChangeGuard,
    plural="changeguards",
    short="cguard",
    columns=(
        PrinterColumn("Pools", "string", ".spec.poolNames"),
        PrinterColumn("Removed", "integer", ".spec.perPlan.maxRemovedNodes"),
        PrinterColumn("Disrupted", "integer", ".spec.perPlan.maxDisruptedGPUs"),
        READY,
        AGE,
        MESSAGE,
    ),
)
