"""The label of its provisioner on each node of a pool: patched onto Nodes, in a template it would make them drift."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.plan.action import Label
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.refs import node_ref
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.scaling.reasons import NodeOfProvisioner
from reconciler.plan.scaling.turn import PoolContext

MOST = 200  # of one provisioner in one plan: the others have their turn in the next


def labels(turn: PoolContext, acted_on: set[str]) -> Iterator[Decision]:
    """For nodes that nothing else is done to in this plan."""
    name, left = turn.ground.wish.name, MOST
    if turn.ground.seen.labelled[name] == turn.ground.size:
        return
    for node in [each.node for each in turn.ground.facts if each.provisioner != name]:
        if node.taint(names.ARRIVING) is not None:  # it is opened first
            continue
        subject = node_ref(node)
        if node.name in acted_on or turn.draft.claimed_by(subject) or turn.draft.is_labelled(subject):
            continue
        if untouchable(node) is not None:
            continue
        if turn.freezes.of_node(node.name) is not None:
            continue
        yield turn.act(
            node, Label(labels=((names.PROVISIONER, name),)), turn.why(NodeOfProvisioner(node.name, turn.ref))
        )
        left -= 1
        if not left:
            return
