"""The one place where capacity is asked for and given back.

Karpenter buys for the pods that it sees, and takes a machine back when its Node is deleted. For what no pod of its own
accord asks for, the draft keeps what is missing, for a planner that asks in Karpenter's own way.
"""

from reconciler.model.cluster.node import Node
from reconciler.model.plan.action import Delete, Hold, Preconditions, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import node_ref
from reconciler.plan.draft import Draft, UnmetNodes
from reconciler.plan.scaling.reasons import PLANNER


def request_capacity(draft: Draft, missing: UnmetNodes, why: Reason) -> Decision:
    """Left for whoever asks Karpenter, and told."""
    draft.missing.append(missing)
    return Decision(PLANNER, Ref("NodeProvisioner", "", missing.provisioner), Hold(), why, missing.pool)


def returned(node: Node, why: Reason) -> Decision:
    """The machine goes: that very node, as it was seen, and only if a most recent look finds no pod that counts."""
    presumes = Preconditions(resource_version=node.metadata.resource_version, empty=True)
    subject = node_ref(node)
    return Decision(PLANNER, subject, Delete(presumes=presumes), why, node.pool)
