"""The label of its provisioner on each node of a pool: patched onto Nodes, in a template it would make them drift."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.plan.action import Label
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.refs import node_ref
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.scaling.pool_context import PoolContext
from reconciler.plan.scaling.reasons import NodeOfProvisioner

MOST = 200  # of one provisioner in one plan: the others have their turn in the next


def labels(context: PoolContext, acted_on: set[str]) -> Iterator[Decision]:
    """For nodes that nothing else is done to in this plan."""
    name, left = context.pool_view.wish.name, MOST
    if context.pool_view.totals.labelled[name] == context.pool_view.size:
        return
    for node in [each.node for each in context.pool_view.facts if each.provisioner != name]:
        if node.taint(names.ARRIVING) is not None:  # it is opened first
            continue
        subject = node_ref(node)
        if node.name in acted_on or context.draft.claimed_by(subject) or context.draft.is_labelled(subject):
            continue
        if untouchable(node) is not None:
            continue
        if context.freezes.of_node(node.name) is not None:
            continue
        yield context.act(
            node, Label(labels=((names.PROVISIONER, name),)), context.why(NodeOfProvisioner(node.name, context.ref))
        )
        left -= 1
        if not left:
            return
