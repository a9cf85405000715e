"""Taints that nobody looks at any more: their DrainPolicy is suspended or gone from the policies, and they come off.

Else a node would be kept from pods for ever. In a pool that is only observed they would come off, and stay
(plan/holds/standstill.py). What somebody else takes away is left to them.
"""

from collections.abc import Iterator

from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import node_ref
from reconciler.plan.drain.codes.candidacy import NoDrainPolicy
from reconciler.plan.drain.context import DrainContext
from reconciler.plan.drain.marks import candidate_mark, draining_mark
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.nodes.ownership import untouchable


def left_behind(context: DrainContext) -> Iterator[Decision]:
    """The hard one first, where a node has both: one action a subject."""
    for facts in context.fleet.nodes_drained:
        node, pool = facts.node, context.pools.get(facts.pool)
        if facts.pool in context.policy_of or pool is None:
            continue
        mark = draining_mark(node) or candidate_mark(node)
        if mark is not None and untouchable(node) is None and not context.is_claimed(node_ref(node)):
            reason = Reason(NoDrainPolicy(pool=pool.name, node=node.name, key=mark.key), pool.origin())
            yield Decision(PLANNER, node_ref(node), mark.off, reason, pool.name)
