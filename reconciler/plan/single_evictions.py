"""Evictions of single pods from nodes that are not drained, within the limits of drains.

The limits are those of the DrainPolicy of the pool: annotations, controllers and PodDisruptionBudgets that keep a pod
(drain/blockers.py), notices for pods that save their work, and grace periods (drain/graceful_eviction.py). In a pool
without a DrainPolicy in force, the defaults of a DrainPolicy apply. Pods of gangs are not evicted one by one.
"""

from collections.abc import Iterable

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Quiet, Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Action, Evict, Facts, Hold, node_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.model.problem import Origin
from reconciler.plan.draft import Draft
from reconciler.plan.drain.blockers import blocker
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.evictions import patience_ms
from reconciler.plan.drain.graceful_eviction import grace_of, notice_of, notice_precondition, saving
from reconciler.plan.drain.marks import HARD, DrainTaint
from reconciler.plan.drain.planner import NEEDED
from reconciler.plan.nodes.eviction import Remaining
from reconciler.plan.nodes.ownership import settled_at
from reconciler.plan.recent_evictions import OBSERVED_KINDS

_USUAL_LIMITS = Declared("DrainPolicy", "", DrainPolicy(pool_names=[]), (("", Origin("", 0)),))


def unread_for_evictions(inputs: Inputs) -> Unread | None:
    """A kind that could not be read, and without which nobody knows which pods may leave, and where to."""
    return inputs.observed.unread_among(*NEEDED)


def quiet_for_evictions(inputs: Inputs) -> Quiet | None:
    """A silent watch, without which the successors of evicted pods may be missed."""
    return inputs.observed.quiet_among(*OBSERVED_KINDS)


class SingleEvictions:
    """Limits for one plan. Mutable: `remaining` is used up."""

    def __init__(self, inputs: Inputs, draft: Draft) -> None:
        self._context = DrainContext(inputs, draft)
        self.remaining = self._context.remaining_budgets()

    @property
    def wakes(self) -> list[Instant]:
        """When a blocker of a pod ends, even if nothing changes in the cluster."""
        return self._context.wakes

    def remaining_after(self, pods: Iterable[Pod]) -> Remaining:
        """What is left of the budgets after these pods, for a trial."""
        left = self.remaining.copy()
        for pod in pods:
            left.take(pod)
        return left

    def why_not(self, node: Node, pod: Pod, remaining: Remaining) -> Facts | None:
        """Why the pod stays; None if the pod may be evicted now."""
        reason = blocker(self._context, remaining, self._as_drained(node, self._context.now), pod)
        return reason.facts if reason is not None else None

    def first_save(self, node: Node, pod: Pod, since: Instant) -> tuple[Action | Hold, Facts] | None:
        """The notice for a pod that saves its work, or the wait for the end of the notice; None if the pod may leave
        now. `since`: when the pod was chosen; notices from before belong to something else.
        """
        decision = saving(self._context, self._as_drained(node, since), pod)
        return (decision.act, decision.reason.facts) if decision is not None else None

    def eviction(self, node: Node, pod: Pod, destination: str) -> Evict:
        grace = grace_of(self._as_drained(node, self._context.now), pod)
        return Evict(grace_seconds=grace, presumes=notice_precondition(pod), destination=destination)

    def notice_ends(self, node: Node, pod: Pod, since: Instant) -> Instant:
        """When the notice of the pod ends; 0 without a notice."""
        notice = notice_of(self._context, self._as_drained(node, since), pod)
        return notice.evict_at if notice is not None else Instant(0)

    def patience_ms(self, node: Node) -> int:
        """How long a pod may stay after its eviction was requested."""
        return patience_ms(self._as_drained(node, self._context.now))

    def _as_drained(self, node: Node, since: Instant) -> DrainNode:
        """The node as the rules for drained nodes see it. Annotations have whole seconds, so the drain counts as begun
        a little earlier.
        """
        limits = self._context.policy_of.get(node.pool, _USUAL_LIMITS)
        begun = later(Instant(since // 1_000 * 1_000), -1_000)
        mark = DrainTaint(names.DRAINING, "", HARD, begun)
        of_node = node.name, node.pool, node.is_ready, node
        return DrainNode(*of_node, limits, node_ref(node), None, mark, None, settled_at(node))
