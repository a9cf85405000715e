"""Invariants of evictions."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.plan.decision import Evict
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.feature.invariant import Invariant, InvariantInput

_MOVING = frozenset({"nodes", "pods", "poddisruptionbudgets.policy"})


def _evicted_astray(case: InvariantInput) -> Iterator[str]:
    drained = [each for each in case.acted if each.decision.planner == PLANNER and isinstance(each.act, Evict)]
    pods = {each.metadata.uid: each for each in case.inputs.observed.pods} if drained else {}
    begun = {each.uid for each in case.inputs.memory.drained.evicted} if drained else set()
    for each in drained:
        requested = [pods.get(ref.uid) for ref in each.decision.refs]
        if None in requested:
            yield f"{each.title}, which does not exist, or leaves together with a missing pod"
        on = [case.fleet.node(pod.node) for pod in requested if pod is not None]
        # When one node drains, a whole gang leaves from all its nodes; and a repeated eviction is allowed on any node.
        if each.decision.subject.uid not in begun and not any(map(_is_kept_from_others, on)):
            yield f"{each.title}, on Node/{on[0].name if on and on[0] else '?'}"


def _is_kept_from_others(node: Node | None) -> bool:
    mark = node.taint(names.DRAINING) if node is not None else None
    return mark is not None and mark.effect != "PreferNoSchedule"


def _evicted_unseen(case: InvariantInput) -> Iterator[str]:
    missing = {each.kind for each in case.inputs.observed.unread} & _MOVING
    for each in case.acted:
        if isinstance(each.act, Evict) and missing:
            yield f"{each.title}, although {', '.join(sorted(missing))} could not be read"


INVARIANTS = (
    Invariant("pods are drained only from nodes that are tainted against new pods", _evicted_astray),
    Invariant("no pod is evicted after a partial read", _evicted_unseen),
)
