"""Nodes that a drain gives back in this plan: each makes up for one that pods wait for, which is not bought then.

Whether such a node suits the pods is seen by the next plan, in which it stays: no place is looked for here.
"""

from collections.abc import Sequence

import msgspec

from reconciler.model import names
from reconciler.model.plan.action import Taint
from reconciler.plan.capacity.wanted_node import WantedNode
from reconciler.plan.draft import Draft, UnmetNodes


class NodeShortfall(msgspec.Struct, frozen=True):
    """Nodes of one pool that are wanted, without those that drained nodes make up for."""

    missing: tuple[UnmetNodes, ...]
    spared: tuple[WantedNode, ...] = ()  # nodes that are not bought
    returned: int = 0


def wanting(draft: Draft, pool: str, missing: Sequence[UnmetNodes]) -> NodeShortfall:
    """Demand is spared first, in its order, and then warm nodes."""
    returned = nodes_returned(draft, pool)
    spared: list[WantedNode] = []
    unmet_nodeses = []
    for each in missing:
        count = max(0, returned - len(spared)) if each.why != "minSize" else 0
        spared += each.wanted[:count]
        unmet_nodeses.append(msgspec.structs.replace(each, wanted=each.wanted[count:]) if count else each)
    return NodeShortfall(tuple(unmet_nodeses), tuple(spared), returned)


def nodes_returned(draft: Draft, pool: str) -> int:
    """How many nodes of the pool lose the taint of a drain by an action of this plan."""
    return sum(
        each.pool == pool
        and each.subject.kind == "Node"
        and isinstance(each.act, Taint)
        and each.act.key == names.DRAINING
        and each.act.value is None
        and not each.would
        for each in draft.claims
    )
