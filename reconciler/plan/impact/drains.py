"""Which nodes drains empty: those that are being drained, and candidates once their timers are over.

A what-if of the limits that decide how many candidates go: the nodes that a NodeProvisioner keeps, and clusterMin.
Where not all may go, the candidates that save most go. Parallelism and the limits of guards decide only when a
candidate goes, so they exclude none.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.action import Hold, Taint
from reconciler.model.plan.decision import Decision
from reconciler.plan.draft import Draft
from reconciler.plan.drain import timers
from reconciler.plan.drain.backoff.in_vain import rests_until
from reconciler.plan.drain.blockers import moves
from reconciler.plan.drain.candidates import EligibilityContext, completing
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.eviction.grace import longest_grace
from reconciler.plan.drain.evictions import EMPTY_FOR_MS
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.scaling.reasons import PLANNER as SCALING
from reconciler.plan.windows import closed


class NodeDrain(msgspec.Struct, frozen=True, gc=False):
    """One node that a drain empties and deletes."""

    node: str
    pool: str
    begins_at: Instant | None  # None: not before a guard allows it, a window opens, or a pod has completed
    seconds: int | None  # from then on, until the node is deleted; None: windows of its policy may close before
    parallelism: int  # how many nodes its policy drains at once
    has_begun: bool = False  # its taint is on the node
    is_known: bool = False  # its timer ran before this plan
    is_acted_on: bool = False  # by this plan: a timer, the taint, an eviction, or the deletion


def drains(scene: PlanningResult) -> dict[str, NodeDrain]:
    """By node, sorted by name."""
    if not scene.plan.weighed:
        return {}
    return _Forecast(scene).drains()


class _Forecast:
    """Owner of the limits while candidates are counted against them."""

    def __init__(self, scene: PlanningResult) -> None:
        self._scene = scene
        self._context = DrainContext(scene.inputs, _draft(scene))
        self._eligibility = EligibilityContext(self._context)
        self._decisions = {each.subject.name: each for each in _of_nodes(scene)}
        self._acted_on = frozenset(_acted_on(scene))
        self._taken: Counter[str] = Counter()

    def drains(self) -> dict[str, NodeDrain]:
        by_name = self._context.by_name
        begun = [each for name, each in self._context.draining.items() if not self._is_given_back(name)]
        candidates = [by_name[each.node] for each in self._scene.plan.weighed if each.is_candidate]
        node_drains = [self._drain(each) for each in begun]
        node_drains += [self._drain(each) for each in self._within_limits(candidates)]
        return {each.node: each for each in sorted(node_drains, key=lambda each: each.node)}

    def _is_given_back(self, node: str) -> bool:
        decision = self._decisions.get(node)
        act = decision.act if decision is not None else None
        return isinstance(act, Taint) and act.key == names.DRAINING and act.value is None

    def _within_limits(self, candidates: list[DrainNode]) -> Iterator[DrainNode]:
        """Those that begin in this plan first; of the others those first that save most."""
        cluster_min = self._eligibility.cluster_min
        for drain_node in sorted(candidates, key=self._order_key):
            budget = self._eligibility.budgets.get(drain_node.pool)
            if not self._begins_now(drain_node):
                if budget is not None and self._taken[drain_node.pool] >= budget.left(drain_node):
                    continue
                if cluster_min.why_not(drain_node.node):
                    continue
            self._taken[drain_node.pool] += 1
            cluster_min.take(drain_node.node)
            yield drain_node

    def _order_key(self, drain_node: DrainNode) -> tuple[bool, tuple[int, int], str]:
        return not self._begins_now(drain_node), self._eligibility.worth.key(drain_node), drain_node.name

    def _begins_now(self, drain_node: DrainNode) -> bool:
        """Whether this plan drains it, or would if no guard held it."""
        decision = self._decisions.get(drain_node.name)
        return decision is not None and (_drains(decision) or _is_held_by_guard(decision))

    def _drain(self, drain_node: DrainNode) -> NodeDrain:
        spec = drain_node.policy.spec
        pods = [pod for pod in self._scene.fleet.pods_on(drain_node.name) if moves(pod)]
        most = spec.max_scale_down_parallelism
        grace = longest_grace(drain_node, pods) if pods else 0
        return NodeDrain(
            drain_node.name,
            drain_node.pool,
            self._begins_at(drain_node),
            None if spec.windows else grace + EMPTY_FOR_MS // 1_000,
            min(spec.max_drain_parallelism, most) if pods else most,
            has_begun=drain_node.draining is not None,
            is_known=drain_node.candidate_since is not None,
            is_acted_on=drain_node.name in self._acted_on,
        )

    def _begins_at(self, drain_node: DrainNode) -> Instant | None:
        now = self._context.now
        if drain_node.draining is not None:
            return drain_node.draining.since
        if completing(self._context, drain_node.name):
            return None
        if self._begins_now(drain_node):
            decision = self._decisions[drain_node.name]
            return decision.act.until if isinstance(decision.act, Hold) else now
        vain = self._eligibility.in_vain.get(drain_node.pool)
        if not drain_node.is_ready or self._context.is_empty(drain_node):
            vain = None
        if vain is not None and drain_node.pool in self._eligibility.no_better:
            return None
        rested = rests_until(vain) if vain is not None and drain_node.pool in self._eligibility.resting else now
        begins = Instant(max(now, timers.due_at(self._context, drain_node), rested))
        shut = closed(drain_node.policy.spec.windows, begins)
        return begins if shut is None else shut.until


def _draft(scene: PlanningResult) -> Draft:
    """As the drain planner found it: with what scaling does in this plan."""
    draft = Draft(scene.fleet, scene.inputs.desired)
    for each in scene.plan.decisions:
        if each.planner == SCALING and not isinstance(each.act, Hold):
            draft.claim(each)
    return draft


def _of_nodes(scene: PlanningResult) -> Iterator[Decision]:
    for each in scene.plan.decisions:
        if each.planner == PLANNER and each.subject.kind == "Node":
            yield each


def _drains(decision: Decision) -> bool:
    act = decision.act
    return isinstance(act, Taint) and act.key == names.DRAINING and act.value is not None


def _is_held_by_guard(decision: Decision) -> bool:
    return isinstance(decision.act, Hold) and isinstance(decision.reason.facts, HeldByGuard)


def _acted_on(scene: PlanningResult) -> Iterator[str]:
    """Names of nodes that this plan marks or deletes, or from which it evicts."""
    pods = {(each.metadata.namespace, each.name): each.node for each in scene.inputs.observed.pods}
    for each in scene.plan.decisions:
        if each.planner != PLANNER or isinstance(each.act, Hold):
            continue
        if each.subject.kind == "Node":
            yield each.subject.name
        elif each.subject.kind == "Pod":
            yield from (pods.get((ref.namespace, ref.name), "") for ref in each.refs)
