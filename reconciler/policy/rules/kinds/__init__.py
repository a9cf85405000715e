"""The kinds, one file each, in the order in which they refer to one another."""

from reconciler.policy.kind import Kind
from reconciler.policy.rules.kinds.change_approval import CHANGE_APPROVAL
from reconciler.policy.rules.kinds.change_guard import CHANGE_GUARD
from reconciler.policy.rules.kinds.drain_policy import DRAIN_POLICY
from reconciler.policy.rules.kinds.gpu_claim import GPU_CLAIM
from reconciler.policy.rules.kinds.gpu_node_status import GPU_NODE_STATUS
from reconciler.policy.rules.kinds.gpu_pool import GPU_POOL
from reconciler.policy.rules.kinds.node_provisioner import NODE_PROVISIONER
from reconciler.policy.rules.kinds.pressure_policy import PRESSURE_POLICY

KINDS: tuple[Kind, ...] = (
    GPU_POOL,
    NODE_PROVISIONER,
    DRAIN_POLICY,
    PRESSURE_POLICY,
    CHANGE_GUARD,
    CHANGE_APPROVAL,
    GPU_CLAIM,
    GPU_NODE_STATUS,
)


def kind_named(name: str) -> Kind | None:
    """The kind of that name."""
    return next((kind for kind in KINDS if kind.name == name), None)
