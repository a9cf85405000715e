"""Nodes that were tried in vain: when it was tried last, since when it has failed, and why the last time.

There is not time for all nodes in each plan, and then what was found before is what there is to tell. It is kept among
the hints, which may be lost at any time, since nothing is decided by it: in the memory it would have to be written anew
with each plan. A node that may be tried no more, or for which places were found, is forgotten.
"""

from collections.abc import Iterator, Mapping

from reconciler.model.plan.memory import FailedPlacement
from reconciler.model.plan.reason import Reason
from reconciler.plan.drain.codes.eligibility import NotEvaluated, NotTried
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.placement import Rehomed

# Nobody looked: what was found before stands.
_UNTRIED = frozenset({NotEvaluated, NotTried})


def tried(context: DrainContext, refused: Mapping[str, Reason], rehomed: Rehomed) -> dict[str, FailedPlacement]:
    """By name. `refused`: why each node is no candidate, where it was looked at."""
    return dict(_tried(context, refused, rehomed))


def _tried(
    context: DrainContext, refused: Mapping[str, Reason], rehomed: Rehomed
) -> Iterator[tuple[str, FailedPlacement]]:
    for drain_node in context.drain_nodes:
        if drain_node.name in rehomed.together:
            continue
        reason = rehomed.refused.get(drain_node.name)
        known = _known(context, drain_node)
        if reason is not None:
            uid, since = drain_node.node.metadata.uid, context.now if known is None else known.since
            yield drain_node.name, FailedPlacement(uid, since, context.now, reason)
        elif known is not None and (drain_node.name not in refused or type(refused[drain_node.name].facts) in _UNTRIED):
            yield drain_node.name, known


def _known(context: DrainContext, drain_node: DrainNode) -> FailedPlacement | None:
    failed_placement = context.inputs.hints.tried.get(drain_node.name)
    return (
        failed_placement
        if failed_placement is not None and failed_placement.uid == drain_node.node.metadata.uid
        else None
    )
