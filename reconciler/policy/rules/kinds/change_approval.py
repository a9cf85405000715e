"""ChangeApproval: its names, columns and rules; the fields stand in `model.kinds.change_approval`."""

from reconciler.model.policy.change_approval import ChangeApproval
from reconciler.policy.kind import AGE, Column, Kind

CHANGE_APPROVAL = Kind(
    spec=ChangeApproval,
    plural="changeapprovals",
    short="capproval",
    columns=(
        Column("Guard", "string", ".spec.guardName"),
        Column("Prune", "string", ".spec.prune"),
        Column("Revision", "string", ".spec.revision"),
        Column("Expires", "string", ".spec.expires"),
        AGE,
    ),
    is_policy=False,
)
