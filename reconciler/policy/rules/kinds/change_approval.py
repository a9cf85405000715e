"""ChangeApproval: its names, columns and rules; the fields stand in `model.kinds.change_approval`."""

from reconciler.model.policy.change_approval import ChangeApproval
from reconciler.policy.kind import AGE, Kind, PrinterColumn

CHANGE_APPROVAL = Kind(
    spec=ChangeApproval,
    plural="changeapprovals",
    short="capproval",
    columns=(
        PrinterColumn("Guard", "string", ".spec.guardName"),
        PrinterColumn("Prune", "string", ".spec.prune"),
        PrinterColumn("Revision", "string", ".spec.revision"),
        PrinterColumn("Expires", "string", ".spec.expires"),
        AGE,
    ),
    is_policy=False,
)
