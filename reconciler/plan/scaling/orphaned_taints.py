"""Marks that nobody looks at any more: their provisioner is suspended, or gone from the policies, and they come off.

Else they would stay for ever, and a hard one keeps all pods from an empty node. In a pool that is only observed they
would come off, and stay (plan/holds/standstill.py). What somebody else takes away is left to them.
"""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.plan.action import Taint
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import node_ref
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.scaling import marks
from reconciler.plan.scaling.pool_view import ScalingContext
from reconciler.plan.scaling.reasons import PLANNER, MarkWithoutProvisioner


def left_behind(context: ScalingContext, scaled: frozenset[str]) -> Iterator[Decision]:
    """`scaled` are the pools whose provisioners have their turn."""
    pools = {each.name: each for each in context.inputs.desired.pools}
    for node in (each.node for each in context.fleet.nodes_unsettled):
        mark, pool = marks.mark_of(node), pools.get(node.pool)
        if mark is None or pool is None or pool.name in scaled:
            continue
        if untouchable(node) is None and node.taint(names.DRAINING) is None:
            why = Reason(MarkWithoutProvisioner(node.name, pool.name, mark.time), pool.origin())
            act = Taint(key=marks.KEY, value=None, effect=mark.effect)
            yield Decision(PLANNER, node_ref(node), act, why, pool.name)
