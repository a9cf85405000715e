"""Which nodes may become candidates at all: an ordered table, the first rule that applies says why not."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import msgspec

from reconciler.fleet.snapshot.per_row import PerRow
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.stuck_pods import leaves_by, stuck_at
from reconciler.model.instant import Instant, later, moment
from reconciler.model.plan.action import Ref
from reconciler.model.plan.drain_memory import InVain, Load
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import node_ref, pod_ref
from reconciler.plan.drain.backoff.in_vain import in_vain, no_better, rests
from reconciler.plan.drain.backoff.setbacks import rests_until
from reconciler.plan.drain.blockers import stays
from reconciler.plan.drain.codes.eligibility import (
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
from reconciler.plan.drain.codes.figures import FreezeEnd, TaintTime
from reconciler.plan.drain.context import PATIENCE_MS, DrainContext, DrainNode
from reconciler.plan.drain.limits import Budget, budgets_of
from reconciler.plan.drain.marks import candidate_mark
from reconciler.plan.drain.nodes.lost import is_karpenters, why_lost
from reconciler.plan.drain.nodes.usage import Usage, usage_of
from reconciler.plan.drain.start.worth import Worth
from reconciler.plan.guards.cluster_min import ClusterMin
from reconciler.plan.nodes.initialization import settles_at
from reconciler.plan.nodes.ownership import opt_out, untouchable
from reconciler.plan.sums import brake


class EligibilityContext:
    """Owner of what the rules look up."""

    def __init__(self, site: DrainContext) -> None:
        self.site = site
        self.setbacks = {(each.node, each.uid): each for each in site.memory.setbacks}
        self.wakes: list[Instant] = []  # when nodes have settled
        self._looks = site.fleet.what_if.part(Looks)
        self._looked: dict[str, Look] = {}
        self._row_of = site.fleet.what_if.rows.row_of
        self._rules: dict[tuple[str, frozenset[Rule]], tuple[Rule, ...]] = {}

    @cached_property
    def budgets(self) -> dict[str, Budget]:
        return budgets_of(self.site)

    @cached_property
    def worth(self) -> Worth:
        return Worth(self.site)

    @cached_property
    def cluster_min(self) -> ClusterMin:
        return ClusterMin(self.site.inputs, self.site.draft)

    @cached_property
    def in_vain(self) -> Mapping[str, InVain]:
        """By pool."""
        return {each.pool: each for each in in_vain(self.site)}

    @cached_property
    def resting(self) -> frozenset[str]:
        """Pools whose nodes are not drained yet, since drains were in vain."""
        return frozenset(pool for pool, each in self.in_vain.items() if rests(self.site, each))

    @cached_property
    def no_better(self) -> Mapping[str, Load]:
        """By pool, how those are used that are used as they were when drains began that were in vain."""
        found = ((pool, no_better(self.site, each)) for pool, each in self.in_vain.items())
        return {pool: load for pool, load in found if load is not None}

    def usage(self, seen: DrainNode) -> Usage:
        return self._look(seen).usage

    def _look(self, seen: DrainNode) -> "Look":
        found = self._looked.get(seen.name)
        if found is None:
            found = self._looked[seen.name] = self._looks.of(self._row_of[seen.name])
        return found

    def rules(self, seen: DrainNode) -> "tuple[Rule, ...]":
        """Those that could apply to the node."""
        look = self._look(seen)
        # One with taints that are only imagined is another node than the one that was looked at.
        rules = look.rules if look.node is seen.node else _ALL
        found = self._rules.get((seen.pool, rules))
        if found is None:
            may = [each for each in RULES if each in rules and each.may_apply(self, seen.pool)]
            found = self._rules[seen.pool, rules] = tuple(may)
        return found


class Rule(msgspec.Struct, frozen=True, eq=False):
    """Why a node is no candidate."""

    why_not: Callable[[EligibilityContext, DrainNode], Reason | None]
    # Whether it could ever apply, where the node and the pods on it say so.
    concerns: Callable[[Node, Sequence[Pod]], bool] = lambda *_: True
    may_apply: Callable[[EligibilityContext, str], bool] = lambda _, pool: bool(pool)  # to any node of a pool


class Look(msgspec.Struct, frozen=True, eq=False):
    """What a node is found to be, for as long as it and its pods are the same."""

    node: Node
    rules: frozenset[Rule]  # that could apply
    usage: Usage
    completing: tuple[Pod, ...]  # for whose completion the node waits


class Looks(PerRow[Look]):
    """Owner of these. Not to be asked within a fork."""

    def __init__(self, fleet: Snapshot) -> None:
        super().__init__(fleet)
        self._alike: dict[frozenset[Rule], frozenset[Rule]] = {}  # one object for all that are equal

    def find(self, row: int) -> Look:
        node, pods = self.fleet.rows.node(row), self.fleet.pods_of_row(row)
        rules = frozenset(rule for rule in RULES if rule.concerns(node, pods))
        completing = tuple([pod for pod in pods if pod.runs_to_completion and stays(pod)])
        return Look(node, self._alike.setdefault(rules, rules), usage_of(self.fleet, row), completing)


def completing(site: DrainContext, name: str) -> Sequence[Pod]:
    """The pods for whose completion a node waits, by namespace and name."""
    row = site.fleet.what_if.rows.row_of[name]
    return site.fleet.what_if.part(Looks).of(row).completing


def _of_others(_: EligibilityContext, seen: DrainNode) -> Reason | None:
    return untouchable(seen.node)


def _draining(_: EligibilityContext, seen: DrainNode) -> Reason | None:
    if seen.draining is None:
        return None
    since = TaintTime(seen.draining.value, seen.draining.since)
    return seen.reason(BeingDrained(node=seen.name, since=since))


def _scaled_down(_: EligibilityContext, seen: DrainNode) -> Reason | None:
    return seen.reason(ScaledDown(node=seen.name)) if seen.node.taint(names.DELETION_TIME) is not None else None


def _frozen(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    pool = ground.site.pools[seen.pool]
    if pool.spec.suspend:
        return seen.reason(FrozenNode(what=f"GpuPool/{pool.name}", until=None, node=seen.name))
    freeze = ground.site.freezes.of_node(seen.name)
    if freeze is None:
        return None
    until = FreezeEnd(freeze.written, freeze.until, freeze.reason)
    return seen.reason(FrozenNode(what=freeze.what, until=until, node=seen.name))


def _others_turn(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    planner = ground.site.draft.claimed_by(node_ref(seen.node))
    # That a candidate gets a label is no reason to take it for something else.
    if not planner or seen.candidate is not None:
        return None
    return seen.reason(OthersTurn(planner=planner, node=seen.name))


def _settling(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    if seen.candidate is not None:
        return None
    claim = ground.site.fleet.claims_on(seen.pool).get(seen.name)
    settles = settles_at(seen.node, claim, ground.site.now)
    if settles is None:
        return None
    ground.wakes.append(settles)
    return seen.reason(NodeSettles(node=seen.name, time=settles))


def _opted_out(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    found = opt_out(seen.node, ground.site.now)
    if found is None:
        return None
    ground.wakes += [found.until] if found.until is not None else []
    return found.reason


def _lost(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    ground.wakes += _stuck_at(ground, seen)
    return why_lost(ground.site, seen)


def _stuck_at(ground: EligibilityContext, seen: DrainNode) -> list[Instant]:
    """When pods turn out to be stuck that leave a node which is not ready."""
    if seen.is_ready:
        return []
    times = (
        stuck_at(pod, seen.node, seen.longest_grace_seconds)
        for pod in ground.site.fleet.pods_on(seen.name)
        if pod.counts
    )
    return [at for at in times if at is not None]


def _leaves_slowly(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    """A pod that is being deleted keeps its node from being empty: nothing is moved for a node that a drain would give
    back. Where the node is not ready, such pods are stuck at some time."""
    if not seen.is_ready:
        return None
    for pod in ground.site.fleet.pods_on(seen.name):
        ends = leaves_by(pod, seen.longest_grace_seconds) if pod.counts else None
        if ends is None:
            continue
        late_at = later(ends, PATIENCE_MS)
        is_late = late_at <= ground.site.now or (moment(pod.metadata.deletion_timestamp) or ends) > late_at
        if is_late:
            facts = PodLeavesSlowly(
                pod=pod_ref(pod),
                time=ends,
                seconds=seen.longest_grace_seconds,
                policy=seen.policy_ref,
                node=seen.name,
            )
            return seen.reason(facts, "maxGracefulTerminationSeconds")
    return None


def _set_back(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    found = ground.setbacks.get((seen.name, seen.node.metadata.uid))
    if found is None or rests_until(found) <= ground.site.now:
        return None
    until = rests_until(found)
    facts = DrainFailedLately(node=seen.name, at=found.at, cause=found.code, times=found.times, until=until)
    return seen.reason(facts)


def _lent(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    gpus = ground.site.fleet.lent.get(seen.name, 0)
    return seen.reason(GpusLent(gpus=gpus, node=seen.name)) if gpus else None


def _empty(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    provisioner = ground.site.provisioner_of.get(seen.pool)
    if provisioner is None or not seen.is_ready or not ground.site.is_empty(seen):
        return None
    code = NodeEmptySuspended if provisioner.spec.suspend else NodeEmpty
    by = Ref("NodeProvisioner", "", provisioner.name)
    return seen.reason(code(node=seen.name, pool=seen.pool, provisioner=by))


def _pool_unready(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    pool = ground.site.fleet.pool(seen.pool)
    return seen.reason(DrainPoolUnready(unready=pool.unready, size=len(pool.nodes), pool=seen.pool))


def at_minimum(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    """Why its pool may lose no node more."""
    budget = ground.budgets.get(seen.pool)
    if budget is None or budget.left(seen):
        return None
    facts = PoolAtMinimum(
        pool=seen.pool,
        size=budget.size,
        leaving=budget.leaving,
        provisioner=budget.provisioner,
        floor=budget.floor_for(seen),
    )
    return seen.reason(facts)


def cluster_at_minimum(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    """Why the cluster may lose no such node more."""
    lack = ground.cluster_min.why_not(seen.node)
    if lack is None:
        return None
    facts = ClusterAtMinimum(
        node=seen.name, resource=lack.resource, left=lack.left, least=lack.least, policy=lack.policy
    )
    return Reason(facts, lack.origin)


def _too_much_used(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    if not seen.is_ready:  # what runs on one that is not ready is of no use to anybody
        return None
    usage, threshold = ground.usage(seen), seen.policy.spec.utilization_threshold_percent
    if usage.is_at_most(threshold):
        return None
    facts = UtilizationTooHigh(
        used=usage.used,
        total=usage.total,
        resource=usage.resource,
        node=seen.name,
        percent=usage.percent_rounded_up,
        threshold=threshold,
    )
    return seen.reason(facts, "utilizationThresholdPercent")


def _is_new(node: Node, _: Sequence[Pod]) -> bool:
    """Whether a node is ready is known to come and go: what was a candidate before has settled."""
    return candidate_mark(node) is None


def _may_be_empty(_: Node, pods: Sequence[Pod]) -> bool:
    return not any(pod.counts for pod in pods)


def _says_anything(node: Node, _: Sequence[Pod]) -> bool:
    annotations = node.metadata.annotations
    return bool(annotations.scale_down_disabled or annotations.do_not_disrupt)


def _may_be_frozen(ground: EligibilityContext, pool: str) -> bool:
    site = ground.site
    return site.pools[pool].spec.suspend or bool(site.freezes.of_pool(pool) or site.fleet.nodes_frozen)


def _is_unready(ground: EligibilityContext, pool: str) -> bool:
    seen = ground.site.fleet.pool(pool)
    return brake.is_on(len(seen.nodes), seen.unready)


RULES: tuple[Rule, ...] = (
    Rule(_of_others, concerns=lambda node, _: untouchable(node) is not None),
    Rule(_draining, concerns=lambda node, _: node.taint(names.DRAINING) is not None),
    Rule(_scaled_down, concerns=lambda node, _: node.taint(names.DELETION_TIME) is not None),
    Rule(_frozen, may_apply=_may_be_frozen),
    Rule(_others_turn, may_apply=lambda ground, _: ground.site.draft.has_claims),
    Rule(_settling, concerns=_is_new),
    Rule(_opted_out, concerns=_says_anything),
    Rule(_lost, concerns=lambda node, _: not node.is_ready and not is_karpenters(node)),
    Rule(_leaves_slowly, concerns=lambda _, pods: any(pod.metadata.leaving for pod in pods)),
    Rule(_set_back, may_apply=lambda ground, _: bool(ground.setbacks)),
    Rule(_lent, may_apply=lambda ground, _: bool(ground.site.fleet.lent)),
    Rule(_empty, concerns=_may_be_empty, may_apply=lambda ground, pool: pool in ground.site.provisioner_of),
    Rule(_pool_unready, may_apply=_is_unready),
    Rule(at_minimum, may_apply=lambda ground, pool: pool in ground.budgets),
    Rule(cluster_at_minimum, may_apply=lambda ground, _: ground.cluster_min.is_limited),
    Rule(_too_much_used),
)
_ALL = frozenset(RULES)


def why_left_alone(ground: EligibilityContext, seen: DrainNode) -> Reason | None:
    """Why nothing that runs there is to be moved, whichever node that were for."""
    return next((found for rule in (_of_others, _frozen, _opted_out) if (found := rule(ground, seen))), None)
