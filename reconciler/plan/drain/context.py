"""Lookups for the drains of one plan, and caches that live from plan to plan."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from reconciler.fleet.occupancy import NodeFacts
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.questions import why_it_stays
from reconciler.fleet.snapshot.row_indexes import PerRow
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.metadata import OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import (
    Action,
    Decision,
    Evict,
    Facts,
    Hold,
    Obstacle,
    Reason,
    Ref,
    node_ref,
    pod_ref,
)
from reconciler.model.plan.drain_memory import DrainMemory, Evicted
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.plan.capacity.demand import GpuClaimIndex
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, leaves_after
from reconciler.plan.drain.marks import DrainTaint, candidate_mark, draining_mark
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import ByNode, as_imagined, by_node, observes
from reconciler.plan.nodes.eviction import PodBudgets, Remaining
from reconciler.plan.nodes.ownership import drain_policies, provisioners, settled_at, untouchable

# --- Cache of the DrainNodes of each pool, reused while the nodes of the pool are unchanged.

T = TypeVar("T")


class LookedAt:
    """A snapshot has one instance, `snapshot.part(LookedAt)`."""

    def __init__(self, _: Snapshot) -> None:
        self._known: dict[str, tuple[object, object, Any]] = {}

    def again(self, pool: str, nodes: object, policy: object, look: Callable[[], T]) -> T:
        """Cached result of `look`. `nodes` and `policy` are all its inputs, and keep their identity until they
        change.
        """
        known = self._known.get(pool)
        if known is None or known[0] is not nodes or known[1] is not policy:
            known = self._known[pool] = nodes, policy, look()
        result: T = known[2]
        return result


# --- Cache of reasons by node. Reuses the previous reason while its inputs are unchanged.

_MOST_A_NODE = 8  # entries per node; the cache is cleared when removed nodes have left too many entries


class Said:
    """A snapshot has one instance, `snapshot.part(Said)`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._rows = snapshot.rows
        self._known: dict[tuple[str, str], tuple[object, Reason]] = {}

    def again(self, node: str, code: str, by: object, tell: Callable[[], Reason]) -> Reason:
        """Cached reason. `by`: all inputs of the reason besides the name of the node."""
        known = self._known.get((node, code))
        if known is None or known[0] != by:
            if len(self._known) > _MOST_A_NODE * self._rows.capacity:
                self._known.clear()
            known = self._known[node, code] = by, tell()
        return known[1]


# --- Cache of the PodDisruptionBudget index, rebuilt when a budget changes.


class BudgetsSeen:
    """A snapshot has one instance, `snapshot.part(BudgetsSeen)`, for the pods of that snapshot."""

    def __init__(self, _: Snapshot) -> None:
        self._pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
        self._budgets = PodBudgets()

    def of(self, pod_disruption_budgets: tuple[PodDisruptionBudget, ...]) -> PodBudgets:
        """Index of the budgets, rebuilt if they are another tuple."""
        if pod_disruption_budgets is not self._pod_disruption_budgets:
            self._pod_disruption_budgets, self._budgets = pod_disruption_budgets, PodBudgets(pod_disruption_budgets)
        return self._budgets


# --- Existing controllers, from the observed workloads.
#
# Only controllers of watched kinds can be known to be gone. If the list of a kind could not be read, nothing is known
# about that kind.

# Controllers that recreate pods, by API version and kind, with the resource whose list shows whether they exist.
WATCHED = {
    ("v1", "ReplicationController"): "replicationcontrollers",
    ("apps/v1", "ReplicaSet"): "replicasets.apps",
    ("apps/v1", "StatefulSet"): "statefulsets.apps",
    ("batch/v1", "Job"): "jobs.batch",
}
_RESOURCE_OF = WATCHED | {("", kind): resource for (_, kind), resource in WATCHED.items()}


class Controllers:
    """The controllers of one Observed."""

    def __init__(self, observed: Observed) -> None:
        # A controller that is being deleted creates no pods.
        there = [each for each in observed.workloads if not each.metadata.deletion_timestamp]
        self.uids = frozenset([each.metadata.uid for each in there if each.metadata.uid])
        self._names = frozenset([(each.kind, each.metadata.namespace, each.metadata.name) for each in there])
        self._unread = frozenset([each.kind for each in observed.unread])

    def is_gone(self, namespace: str, owner: OwnerReference) -> bool:
        """Whether the owner is of a watched kind and does not exist."""
        is_there = owner.uid in self.uids if owner.uid else (owner.kind, namespace, owner.name) in self._names
        resource = None if is_there else _RESOURCE_OF.get((owner.api_version, owner.kind))
        return resource is not None and resource not in self._unread


class ControllersSeen:
    """Cache of the controllers. A snapshot has one instance, `snapshot.part(ControllersSeen)`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._observed = snapshot.observed
        self._controllers = Controllers(self._observed)

    def of(self, observed: Observed) -> Controllers:
        """Controllers, rebuilt when the workloads or the unread kinds change."""
        if observed.workloads is not self._observed.workloads or observed.unread != self._observed.unread:
            self._controllers = Controllers(observed)
        self._observed = observed
        return self._controllers


# --- Cache of the pods that a node waits for, valid while the node has the same pods.


class Completing(PerRow[tuple[Pod, ...]]):
    """Pods that run to completion, by row; each by namespace and name."""

    def find(self, row: int) -> tuple[Pod, ...]:
        there = self.fleet.observed_on[row]
        if not any(each.pod.runs_to_completion for each in there.counts):
            return ()
        return tuple([pod for pod in there.pods if pod.runs_to_completion and pod.counts and not pod.metadata.leaving])


PATIENCE_MS = 120_000  # added to the longest grace period: how long a drain may make no progress


class DrainNode(msgspec.Struct, frozen=True, gc=False):
    """A node of a pool that a DrainPolicy names. In an observed pool the node has the taints that it would have."""

    name: str
    pool: str
    is_ready: bool
    node: Node
    policy: Declared[DrainPolicy]
    ref: Ref
    candidate: DrainTaint | None
    draining: DrainTaint | None
    candidate_since: Instant | None  # start of the candidate timer, if the taint is readable
    settled_at: Instant  # when the node has settled, if it has no NodeClaim

    @property
    def longest_grace_seconds(self) -> int:
        """Longest grace period that counts for a pod on the node."""
        return self.policy.spec.max_graceful_termination_seconds

    @property
    def policy_ref(self) -> Ref:
        return ref_of_policy(self.policy)

    def reason(self, facts: Facts, field: str = "") -> Reason:
        """Reason whose origin is a field of the policy, or the policy."""
        return Reason(facts, self.policy.origin(f"spec.{field}" if field else ""))

    @property
    def draining_since(self) -> Instant | None:
        """Start of the drain, if the taint is readable."""
        return self.draining.since if self.draining is not None else None


class DrainContext:
    """Shared lookups for one plan. Mutable."""

    def __init__(self, inputs: Inputs, draft: Draft) -> None:
        self.inputs, self.draft = inputs, draft
        self.fleet, self.now = draft.fleet, inputs.now
        named = drain_policies(inputs.desired)
        self.policy_of = {pool: policy for pool, policy in named.items() if pool not in draft.left_out}
        self.provisioner_of = provisioners(inputs)
        self.wakes: list[Instant] = []  # when a blocker of a pod ends, even if nothing changes in the cluster
        self._staying: dict[PodClass, Obstacle | None] = {}

    @property
    def memory(self) -> DrainMemory:
        return self.inputs.memory.drained

    @cached_property
    def evicted_uids(self) -> frozenset[str]:
        """Uids of evicted pods in the memory."""
        return frozenset(each.uid for each in self.memory.evicted)

    @cached_property
    def said(self) -> Said:
        return self.fleet.snapshot.part(Said)

    @cached_property
    def freezes(self) -> Freezes:
        return Freezes(self.inputs, self.fleet)

    @cached_property
    def budgets(self) -> PodBudgets:
        return self.fleet.snapshot.part(BudgetsSeen).of(self.inputs.observed.budgets)

    def remaining_budgets(self) -> Remaining:
        """Budgets after the evictions of earlier planners in this plan."""
        remaining = Remaining(self.budgets)
        evictions = [each for each in self.draft.claims if isinstance(each.act, Evict) and not each.would]
        uids = {ref.uid for each in evictions for ref in each.refs}
        for pod in self.inputs.observed.pods if uids else ():
            if pod.metadata.uid in uids:
                remaining.take(pod)
        return remaining

    @cached_property
    def controllers(self) -> Controllers:
        return self.fleet.snapshot.part(ControllersSeen).of(self.inputs.observed)

    @cached_property
    def claims(self) -> GpuClaimIndex:
        return GpuClaimIndex(self.inputs.observed, self.inputs.desired.pools)

    @cached_property
    def policies(self) -> list[Declared[DrainPolicy]]:
        """DrainPolicies that name a pool, by name."""
        return sorted({each.name: each for each in self.policy_of.values()}.values(), key=lambda each: each.name)

    @cached_property
    def pools(self) -> Mapping[str, Declared[GpuPool]]:
        return {each.name: each for each in self.inputs.desired.pools}

    @cached_property
    def drain_nodes(self) -> list[DrainNode]:
        """Nodes of pools with a DrainPolicy, without nodes that are being deleted, by name."""
        nodes = [each for pool, policy in self.policy_of.items() for each in self._list_drain_nodes(pool, policy)]
        return sorted(nodes, key=attrgetter("name"))

    def _list_drain_nodes(self, pool: str, policy: Declared[DrainPolicy]) -> list[DrainNode]:
        looked_at = self.fleet.snapshot.part(LookedAt)
        with planning_for(pool):
            nodes = self.fleet.pool(pool).nodes
            if not self._imagined or pool not in self.report_only_pools:
                return looked_at.again(pool, nodes, policy, partial(_all_looked_at, nodes, policy))
            return [_looked_at(facts, policy, self._as_imagined(facts.node)) for facts in nodes]

    @cached_property
    def _imagined(self) -> ByNode:
        return by_node(self.inputs)

    def _as_imagined(self, node: Node) -> Node:
        taints = self._imagined.get((node.name, node.metadata.uid))
        return as_imagined(node, taints) if taints else node

    def per_node(self, cache: type[PerRow[T]]) -> Mapping[str, T]:
        """The cached value of each node, by name."""
        values, by_name = self.fleet.snapshot.part(cache), dict[str, T]()
        for pool, rows in self._rows.items():
            with planning_for(pool):
                by_name.update(zip(rows, values.all(rows.values()), strict=True))
        return by_name

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[str, int]]:
        """By pool, the rows of its nodes by name."""
        row_of = self.fleet.snapshot.rows.row_of
        return {pool: {each.name: row_of[each.name] for each in self.fleet.pool(pool).nodes} for pool in self.policy_of}

    @cached_property
    def completing(self) -> Mapping[str, tuple[Pod, ...]]:
        """By name, nodes that wait for pods to complete, and these pods by namespace and name."""
        return {name: pods for name, pods in self.per_node(Completing).items() if pods}

    @cached_property
    def by_name(self) -> Mapping[str, DrainNode]:
        return {each.name: each for each in self.drain_nodes}

    @cached_property
    def draining(self) -> Mapping[str, DrainNode]:
        """By name, nodes that bear the hard drain taint, without observed nodes and nodes that another controller or a
        person handles.
        """
        return {each.name: each for each in self.drain_nodes if each.draining is not None and not self.is_others(each)}

    @cached_property
    def report_only_pools(self) -> frozenset[str]:
        """Pools whose decisions are reported and not carried out."""
        return frozenset(pool for pool in self.policy_of if observes(self.inputs, pool))

    @cached_property
    def _empty(self) -> frozenset[str]:
        return frozenset([facts.name for pool in self.policy_of for facts in self.fleet.pool(pool).empty])

    def is_empty(self, drain_node: DrainNode) -> bool:
        """Whether the node has no workload pod and no lent GPU."""
        return drain_node.name in self._empty

    def is_report_only(self, drain_node: DrainNode) -> bool:
        """Whether decisions about the node are reported only, because its pool is observed."""
        return drain_node.pool in self.report_only_pools

    def is_others(self, drain_node: DrainNode) -> bool:
        """Whether reconciler may not write to the node: another controller or a person handles the node, or the pool is
        observed only.
        """
        return self.is_report_only(drain_node) or untouchable(drain_node.node) is not None

    def why_it_stays(self, pod: Pod) -> Obstacle | None:
        """Why it is unknown which nodes the pod fits on."""
        return self.why_such_stay(self.fleet.snapshot.classes.of(pod))

    def why_such_stay(self, pod_class: PodClass) -> Obstacle | None:
        """The same for a class of pods, cached."""
        if pod_class not in self._staying:
            self._staying[pod_class] = why_it_stays(pod_class, self.fleet.snapshot)
        return self._staying[pod_class]

    def is_claimed(self, subject: Ref) -> bool:
        """Whether another planner acts on the subject in this plan."""
        return bool(self.draft.claimed_by(subject))

    def is_taken(self, drain_node: DrainNode) -> bool:
        """Whether another planner acts on the node in this plan."""
        return self.draft.has_claims and self.is_claimed(drain_node.ref)

    def leaves_after_plan(self, drain_node: DrainNode) -> bool:
        """Whether the node is being removed once the actions of earlier planners are carried out. Report-only actions
        of observed pools count too.
        """
        act = self.draft.act_on(drain_node.ref) if self.draft.has_claims else None
        return leaves_after(act, drain_node.node)

    def act(self, drain_node: DrainNode, act: Action | Hold, why: Reason) -> Decision:
        return Decision(PLANNER, drain_node.ref, act, why, drain_node.pool)

    def act_on(self, pod: Pod, drain_node: DrainNode, act: Action | Hold, why: Reason) -> Decision:
        return Decision(PLANNER, pod_ref(pod), act, why, drain_node.pool)

    def hold(self, policy: Declared[DrainPolicy], why: Reason, until: Instant | None = None) -> Decision:
        """Hold on the policy itself."""
        return Decision(PLANNER, ref_of_policy(policy), Hold(until), why)


def ref_of_policy(policy: Declared[DrainPolicy]) -> Ref:
    return Ref("DrainPolicy", "", policy.name)


def ref_of_evicted(evicted: Evicted) -> Ref:
    namespace, _, name = evicted.title.partition("/")
    return Ref("Pod", namespace, name, evicted.uid)


def ref_of_budget(budget: PodDisruptionBudget) -> Ref:
    return Ref("PodDisruptionBudget", budget.metadata.namespace, budget.metadata.name)


def _all_looked_at(nodes: Sequence[NodeFacts], policy: Declared[DrainPolicy]) -> list[DrainNode]:
    return [_looked_at(facts, policy, facts.node) for facts in nodes]


def _looked_at(facts: NodeFacts, policy: Declared[DrainPolicy], node: Node) -> DrainNode:
    """`node`: with the taints that the node would have."""
    is_plain = node is facts.node and not facts.is_drained
    candidate, draining = (None, None) if is_plain else (candidate_mark(node), draining_mark(node))
    since = candidate.since if candidate is not None else None
    marks = candidate, draining, since
    return DrainNode(facts.name, facts.pool, facts.is_ready, node, policy, node_ref(node), *marks, settled_at(node))
