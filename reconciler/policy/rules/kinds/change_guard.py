"""ChangeGuard: its names, columns and rules; the fields stand in `model.kinds.change_guard`."""

from reconciler.model.policy.change_guard import ChangeGuard
from reconciler.policy.kind import AGE, MESSAGE, READY, Column, Kind

CHANGE_GUARD = Kind(
    spec=ChangeGuard,
    plural="changeguards",
    short="cguard",
    columns=(
        Column("Pools", "string", ".spec.poolNames"),
        Column("Removed", "integer", ".spec.perPlan.maxRemovedNodes"),
        Column("Disrupted", "integer", ".spec.perPlan.maxDisruptedGPUs"),
        READY,
        AGE,
        MESSAGE,
    ),
)
