"""Rules that exclude nodes from drains: an ordered table, the first matching rule is the reason."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

import msgspec

from reconciler.fleet.pod_classes import PodProfile
from reconciler.fleet.snapshot.row_indexes import PerRow
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import leaves_by, stuck_at
from reconciler.model.instant import Instant, later, moment
from reconciler.model.plan.decision import Reason, Ref, pod_ref
from reconciler.model.plan.drain_memory import InVain, Load
from reconciler.plan import sums
from reconciler.plan.drain.backoff import in_vain, no_better, rests, setback_until
from reconciler.plan.drain.blockers import is_karpenters, why_lost
from reconciler.plan.drain.codes.blockers import (
    BeingDrained,
    ClusterAtMinimum,
    DrainFailedLately,
    DrainPoolUnready,
    FrozenNode,
    GpusLent,
    NodeEmpty,
    NodeEmptySuspended,
    NodeSettles,
    OthersTurn,
    PodLeavesSlowly,
    PoolAtMinimum,
    ScaledDown,
    UtilizationTooHigh,
)
from reconciler.plan.drain.codes.words import FreezeEnd, TaintTime
from reconciler.plan.drain.context import PATIENCE_MS, DrainContext, DrainNode
from reconciler.plan.drain.limits import PoolDrainBudget, budgets_of
from reconciler.plan.drain.marks import candidate_mark
from reconciler.plan.drain.node_value import MachineSavings, Usage, usage_of
from reconciler.plan.guards.tally import ClusterMin
from reconciler.plan.nodes.ownership import opt_out, settles_at, untouchable


class EligibilityContext:
    """Lookups that the rules share. Mutable within one plan."""

    def __init__(self, context: DrainContext) -> None:
        self.context = context
        self.setbacks = {(each.node, each.uid): each for each in context.memory.setbacks}
        self.wakes: list[Instant] = []  # when nodes will have settled
        self._rules: dict[tuple[str, frozenset[ExclusionRule]], tuple[ExclusionRule, ...]] = {}

    @cached_property
    def budgets(self) -> dict[str, PoolDrainBudget]:
        return budgets_of(self.context)

    @cached_property
    def worth(self) -> MachineSavings:
        return MachineSavings(self.context)

    @cached_property
    def cluster_min(self) -> ClusterMin:
        return ClusterMin(self.context.inputs, self.context.draft)

    @cached_property
    def in_vain(self) -> Mapping[str, InVain]:
        """Drains in vain by pool."""
        return {each.pool: each for each in in_vain(self.context)}

    @cached_property
    def resting(self) -> frozenset[str]:
        """Pools that are not drained yet, because earlier drains were in vain."""
        return frozenset(pool for pool, each in self.in_vain.items() if rests(self.context, each))

    @cached_property
    def no_better(self) -> Mapping[str, Load]:
        """Current load of pools where another drain would be in vain again."""
        found = ((pool, no_better(self.context, each)) for pool, each in self.in_vain.items())
        return {pool: load for pool, load in found if load is not None}

    @cached_property
    def _looks(self) -> "Mapping[str, Look]":
        return self.context.per_node(Looks)

    def usage(self, drain_node: DrainNode) -> Usage:
        return self._looks[drain_node.name].usage

    def rules(self, drain_node: DrainNode) -> "tuple[ExclusionRule, ...]":
        """Rules that could apply to the node."""
        look = self._looks[drain_node.name]
        # A node with imagined taints differs from the node in the cache, so all rules are checked.
        rules = look.rules if look.node is drain_node.node else _ALL
        exclusion_rules = self._rules.get((drain_node.pool, rules))
        if exclusion_rules is None:
            may = [each for each in RULES if each in rules and each.may_apply(self, drain_node.pool)]
            exclusion_rules = self._rules[drain_node.pool, rules] = tuple(may)
        return exclusion_rules


Profiles = Iterable[PodProfile]  # of the pods of a node


class ExclusionRule(msgspec.Struct, frozen=True, eq=False):
    """A rule that can exclude a node from drains."""

    why_not: Callable[[EligibilityContext, DrainNode], Reason | None]
    # `concerns`: whether the rule could apply to a node with these pods, checked once while both are unchanged;
    # `may_apply`: whether the rule could apply to any node of a pool.
    concerns: Callable[[Node, Profiles], bool] = lambda *_: True
    may_apply: Callable[[EligibilityContext, str], bool] = lambda _, pool: bool(pool)


class Look(msgspec.Struct, frozen=True, eq=False):
    """Cached facts about a node, valid while the node and its pods are unchanged."""

    node: Node
    rules: frozenset[ExclusionRule]  # rules that could apply
    usage: Usage


class Looks(PerRow[Look]):
    """Cache of `Look` by row. Do not use within a fork."""

    def __init__(self, fleet: Snapshot) -> None:
        super().__init__(fleet)
        self._alike: dict[frozenset[ExclusionRule], frozenset[ExclusionRule]] = {}  # one object for equal sets

    def find(self, row: int) -> Look:
        node, there = self.fleet.rows.node(row), self.fleet.observed_on[row]
        rules = frozenset([rule for rule in RULES if rule.concerns(node, there.counts)])
        return Look(node, self._alike.setdefault(rules, rules), usage_of(self.fleet, row))


def _of_others(_: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    return untouchable(drain_node.node)


def _draining(_: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    if drain_node.draining is None:
        return None
    since = TaintTime(drain_node.draining.value, drain_node.draining.since)
    return drain_node.reason(BeingDrained(node=drain_node.name, since=since))


def _scaled_down(_: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    return (
        drain_node.reason(ScaledDown(node=drain_node.name))
        if drain_node.node.taint(names.DELETION_TIME) is not None
        else None
    )


def _frozen(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    pool = eligibility.context.pools[drain_node.pool]
    if pool.spec.suspend:
        return drain_node.reason(FrozenNode(what=f"GpuPool/{pool.name}", until=None, node=drain_node.name))
    freeze = eligibility.context.freezes.of_node(drain_node.name)
    if freeze is None:
        return None
    until = FreezeEnd(freeze.written, freeze.until, freeze.reason)
    return drain_node.reason(FrozenNode(what=freeze.scope_text, until=until, node=drain_node.name))


def _removed_by_another_planner(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    planner = eligibility.context.draft.claimed_by(drain_node.ref)
    # A Label on a candidate does not exclude the candidate.
    if not planner or drain_node.candidate is not None:
        return None
    return drain_node.reason(OthersTurn(planner=planner, node=drain_node.name))


def _settling(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    if drain_node.candidate is not None:
        return None
    claim = eligibility.context.fleet.claims_on(drain_node.pool).get(drain_node.name)
    if claim is None and drain_node.settled_at <= eligibility.context.now:
        return None
    settles = settles_at(drain_node.node, claim, eligibility.context.now)
    if settles is None:
        return None
    eligibility.wakes.append(settles)
    return drain_node.reason(NodeSettles(node=drain_node.name, time=settles))


def _opted_out(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    found = opt_out(drain_node.node, eligibility.context.now)
    if found is None:
        return None
    eligibility.wakes += [found.until] if found.until is not None else []
    return found.reason


def _lost(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    eligibility.wakes += _stuck_at(eligibility, drain_node)
    return why_lost(eligibility.context, drain_node)


def _stuck_at(eligibility: EligibilityContext, drain_node: DrainNode) -> list[Instant]:
    """When terminating pods on an unready node will count as stuck."""
    if drain_node.is_ready:
        return []
    times = (
        stuck_at(pod, drain_node.node, drain_node.longest_grace_seconds)
        for pod in eligibility.context.fleet.pods_on(drain_node.name)
        if pod.counts
    )
    return [at for at in times if at is not None]


def _leaves_slowly(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    """Why a slowly terminating pod excludes its node. The node can't become empty, so a drain would move other pods and
    then be cancelled. On an unready node such pods count as stuck after a while.
    """
    if not drain_node.is_ready:
        return None
    for pod in eligibility.context.fleet.pods_on(drain_node.name):
        ends = leaves_by(pod, drain_node.longest_grace_seconds) if pod.counts else None
        if ends is None:
            continue
        late_at = later(ends, PATIENCE_MS)
        is_late = late_at <= eligibility.context.now or (moment(pod.metadata.deletion_timestamp) or ends) > late_at
        if is_late:
            facts = PodLeavesSlowly(
                pod=pod_ref(pod),
                time=ends,
                seconds=drain_node.longest_grace_seconds,
                policy=drain_node.policy_ref,
                node=drain_node.name,
            )
            return drain_node.reason(facts, "maxGracefulTerminationSeconds")
    return None


def _set_back(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    setback = eligibility.setbacks.get((drain_node.name, drain_node.node.metadata.uid))
    if setback is None or setback_until(setback) <= eligibility.context.now:
        return None
    until = setback_until(setback)
    facts = DrainFailedLately(node=drain_node.name, at=setback.at, cause=setback.code, times=setback.times, until=until)
    return drain_node.reason(facts)


def _lent(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    gpus = eligibility.context.fleet.lent.get(drain_node.name, 0)
    return drain_node.reason(GpusLent(gpus=gpus, node=drain_node.name)) if gpus else None


def _empty(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    provisioner = eligibility.context.provisioner_of.get(drain_node.pool)
    if provisioner is None or not drain_node.is_ready or not eligibility.context.is_empty(drain_node):
        return None
    code = NodeEmptySuspended if provisioner.spec.suspend else NodeEmpty
    by = Ref("NodeProvisioner", "", provisioner.name)
    return drain_node.reason(code(node=drain_node.name, pool=drain_node.pool, provisioner=by))


def _pool_unready(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    pool = eligibility.context.fleet.pool(drain_node.pool)
    return drain_node.reason(DrainPoolUnready(unready=pool.unready, size=len(pool.nodes), pool=drain_node.pool))


def at_minimum(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    """Why the pool may lose no further node."""
    budget = eligibility.budgets.get(drain_node.pool)
    if budget is None or budget.left(drain_node):
        return None
    facts = PoolAtMinimum(
        pool=drain_node.pool,
        size=budget.size,
        leaving=budget.leaving,
        provisioner=budget.provisioner,
        floor=budget.floor_for(drain_node),
    )
    return drain_node.reason(facts)


def cluster_at_minimum(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    """Why the cluster may lose no further node of this kind."""
    lack = eligibility.cluster_min.why_not(drain_node.node)
    if lack is None:
        return None
    facts = ClusterAtMinimum(
        node=drain_node.name, resource=lack.resource, left=lack.left, least=lack.least, policy=lack.policy
    )
    return Reason(facts, lack.origin)


def _too_much_used(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    if not drain_node.is_ready:  # the pods of an unready node do no work
        return None
    usage, threshold = eligibility.usage(drain_node), drain_node.policy.spec.utilization_threshold_percent
    if usage.is_at_most(threshold):
        return None
    facts = UtilizationTooHigh(
        used=usage.used,
        total=usage.total,
        resource=usage.resource,
        node=drain_node.name,
        percent=usage.percent_rounded_up,
        threshold=threshold,
    )
    return drain_node.reason(facts, "utilizationThresholdPercent")


def _is_new(node: Node, _: Profiles) -> bool:
    """Whether the node may still settle. A candidate has settled before: readiness can come and go."""
    return candidate_mark(node) is None


def _may_be_empty(_: Node, profiles: Profiles) -> bool:
    return all(each.pod_class.goes_with_its_node for each in profiles)


def _has_leaving_pods(_: Node, profiles: Profiles) -> bool:
    return any(each.pod_class.leaving for each in profiles)


def _says_anything(node: Node, _: Profiles) -> bool:
    annotations = node.metadata.annotations
    return bool(annotations.scale_down_disabled or annotations.do_not_disrupt)


def _may_be_frozen(eligibility: EligibilityContext, pool: str) -> bool:
    context = eligibility.context
    return context.pools[pool].spec.suspend or bool(context.freezes.of_pool(pool) or context.fleet.nodes_frozen)


def _is_unready(eligibility: EligibilityContext, pool: str) -> bool:
    totals = eligibility.context.fleet.pool(pool)
    return sums.is_on(len(totals.nodes), totals.unready)


RULES: tuple[ExclusionRule, ...] = (
    ExclusionRule(_of_others, concerns=lambda node, _: untouchable(node) is not None),
    ExclusionRule(_draining, concerns=lambda node, _: node.taint(names.DRAINING) is not None),
    ExclusionRule(_scaled_down, concerns=lambda node, _: node.taint(names.DELETION_TIME) is not None),
    ExclusionRule(_frozen, may_apply=_may_be_frozen),
    ExclusionRule(_removed_by_another_planner, may_apply=lambda eligibility, _: eligibility.context.draft.has_claims),
    ExclusionRule(_settling, concerns=_is_new),
    ExclusionRule(_opted_out, concerns=_says_anything),
    ExclusionRule(_lost, concerns=lambda node, _: not node.is_ready and not is_karpenters(node)),
    ExclusionRule(_leaves_slowly, concerns=_has_leaving_pods),
    ExclusionRule(_set_back, may_apply=lambda eligibility, _: bool(eligibility.setbacks)),
    ExclusionRule(_lent, may_apply=lambda eligibility, _: bool(eligibility.context.fleet.lent)),
    ExclusionRule(
        _empty, concerns=_may_be_empty, may_apply=lambda eligibility, pool: pool in eligibility.context.provisioner_of
    ),
    ExclusionRule(_pool_unready, may_apply=_is_unready),
    ExclusionRule(at_minimum, may_apply=lambda eligibility, pool: pool in eligibility.budgets),
    ExclusionRule(cluster_at_minimum, may_apply=lambda eligibility, _: eligibility.cluster_min.is_limited),
    ExclusionRule(_too_much_used),
)
_ALL = frozenset(RULES)


def why_left_alone(eligibility: EligibilityContext, drain_node: DrainNode) -> Reason | None:
    """Why the node must be left alone, so that no pod is moved off the node for the sake of another node."""
    return next(
        (reason for rule in (_of_others, _frozen, _opted_out) if (reason := rule(eligibility, drain_node))), None
    )
