"""Owner of what all drains of one plan look at; what several of them ask is looked up once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial

import msgspec

from reconciler.fleet.filters.unmovable import why_it_stays
from reconciler.fleet.node_facts import NodeFacts
from reconciler.fleet.pod_class import PodClass
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan.action import Action, Hold, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.drain_memory import DrainMemory, Evicted
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Facts, Reason
from reconciler.model.plan.refs import node_ref, pod_ref
from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.plan.capacity.claims import GpuClaimIndex
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, leaves_after
from reconciler.plan.drain.marks import DrainTaint, candidate_mark, draining_mark
from reconciler.plan.drain.nodes.budgets import BudgetsSeen
from reconciler.plan.drain.nodes.controllers import Controllers, ControllersSeen
from reconciler.plan.drain.nodes.eligibility_cache import LookedAt
from reconciler.plan.drain.nodes.reason_cache import Said
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observed_taints import as_imagined, by_node
from reconciler.plan.guards.observing import observes
from reconciler.plan.nodes.eviction import PodBudgets
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.nodes.removers import drain_policies, provisioners
from reconciler.plan.sums.usage import is_empty

PATIENCE_MS = 120_000  # beside the longest grace: for how long nothing may go on while a node is emptied


class DrainNode(msgspec.Struct, frozen=True, gc=False):
    """A node of a pool that a DrainPolicy names; where that pool only observes, with the taints that it would bear."""

    name: str
    pool: str
    is_ready: bool
    node: Node
    policy: Declared[DrainPolicy]
    candidate: DrainTaint | None = None
    draining: DrainTaint | None = None

    @property
    def candidate_since(self) -> Instant | None:
        """As far as the taint tells it."""
        return self.candidate.since if self.candidate is not None else None

    @property
    def longest_grace_seconds(self) -> int:
        """That is believed of a pod on the node."""
        return self.policy.spec.max_graceful_termination_seconds

    @property
    def policy_ref(self) -> Ref:
        return ref_of_policy(self.policy)

    def reason(self, facts: Facts, field: str = "") -> Reason:
        """That leads back to a field of the policy, or to the policy."""
        return Reason(facts, self.policy.origin(f"spec.{field}" if field else ""))

    @property
    def draining_since(self) -> Instant | None:
        """As far as the taint tells it."""
        return self.draining.since if self.draining is not None else None


class DrainContext:
    """For one plan."""

    def __init__(self, inputs: Inputs, draft: Draft) -> None:
        self.inputs, self.draft = inputs, draft
        self.fleet, self.now = draft.fleet, inputs.now
        named = drain_policies(inputs.desired)
        self.policy_of = {pool: policy for pool, policy in named.items() if pool not in draft.left_out}
        self.provisioner_of = provisioners(inputs)
        self.wakes: list[Instant] = []  # when something that keeps a pod ends, though nothing changes
        self._staying: dict[PodClass, Obstacle | None] = {}

    @property
    def memory(self) -> DrainMemory:
        return self.inputs.memory.drained

    @cached_property
    def evicted_uids(self) -> frozenset[str]:
        """Uids of the pods that are remembered as asked to leave."""
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

    @cached_property
    def controllers(self) -> Controllers:
        return self.fleet.snapshot.part(ControllersSeen).of(self.inputs.observed)

    @cached_property
    def claims(self) -> GpuClaimIndex:
        return GpuClaimIndex(self.inputs.observed, self.inputs.desired.pools)

    @cached_property
    def policies(self) -> list[Declared[DrainPolicy]]:
        """Those that name a pool, by name."""
        return sorted({each.name: each for each in self.policy_of.values()}.values(), key=lambda each: each.name)

    @cached_property
    def pools(self) -> Mapping[str, Declared[GpuPool]]:
        return {each.name: each for each in self.inputs.desired.pools}

    @cached_property
    def drain_nodes(self) -> list[DrainNode]:
        """The nodes of pools that are named, those that are being deleted left out; by name."""
        return sorted(self._list_drain_nodes(), key=lambda each: each.name)

    def _list_drain_nodes(self) -> Iterator[DrainNode]:
        imagined, looked_at = by_node(self.inputs), self.fleet.snapshot.part(LookedAt)
        for pool, policy in self.policy_of.items():
            with planning_for(pool):
                nodes = self.fleet.pool(pool).nodes
                if imagined and pool in self._report_only_pools:
                    for facts in nodes:
                        taints = imagined.get((facts.name, facts.node.metadata.uid))
                        yield _looked_at(facts, policy, as_imagined(facts.node, taints) if taints else facts.node)
                else:
                    yield from looked_at.again(pool, nodes, policy, partial(_all_looked_at, nodes, policy))

    @cached_property
    def by_name(self) -> Mapping[str, DrainNode]:
        return {each.name: each for each in self.drain_nodes}

    @cached_property
    def draining(self) -> Mapping[str, DrainNode]:
        """By name, those that really bear our hard taint, and that are ours to go on with: nobody else has them."""
        return {each.name: each for each in self.drain_nodes if each.draining is not None and not self.is_others(each)}

    @cached_property
    def _report_only_pools(self) -> frozenset[str]:
        """Pools of which all is told, and nothing done."""
        return frozenset(pool for pool in self.policy_of if observes(self.inputs, pool))

    def is_empty(self, drain_node: DrainNode) -> bool:
        """Whether no pod on the node counts, and none of its GPUs is lent."""
        return is_empty(self.fleet, drain_node.node)

    def is_report_only(self, drain_node: DrainNode) -> bool:
        """Whether nothing is done to it, since its pool is only observed."""
        return drain_node.pool in self._report_only_pools

    def is_others(self, drain_node: DrainNode) -> bool:
        """Whether nobody here may write to it: somebody else has it in hand, or its pool is only observed."""
        return self.is_report_only(drain_node) or untouchable(drain_node.node) is not None

    def why_it_stays(self, pod: Pod) -> Obstacle | None:
        """Why it can't be told where such a pod would fit."""
        return self.why_such_stay(self.fleet.snapshot.classes.of(pod))

    def why_such_stay(self, pod_class: PodClass) -> Obstacle | None:
        """The same of a class; found once."""
        if pod_class not in self._staying:
            self._staying[pod_class] = why_it_stays(pod_class, self.fleet.snapshot)
        return self._staying[pod_class]

    def is_claimed(self, subject: Ref) -> bool:
        """Whether another planner acts on it in this plan."""
        return bool(self.draft.claimed_by(subject))

    def is_taken(self, drain_node: DrainNode) -> bool:
        """The same of a node."""
        return self.draft.has_claims and self.is_claimed(node_ref(drain_node.node))

    def leaves_after_plan(self, drain_node: DrainNode) -> bool:
        """Whether the node is on its way out once the actions of earlier planners are done, or would be done in a
        pool that is only observed."""
        act = self.draft.act_on(node_ref(drain_node.node)) if self.draft.has_claims else None
        return leaves_after(act, drain_node.node)

    def act(self, drain_node: DrainNode, act: Action | Hold, why: Reason) -> Decision:
        return Decision(PLANNER, node_ref(drain_node.node), act, why, drain_node.pool)

    def act_on(self, pod: Pod, drain_node: DrainNode, act: Action | Hold, why: Reason) -> Decision:
        return Decision(PLANNER, pod_ref(pod), act, why, drain_node.pool)

    def hold(self, policy: Declared[DrainPolicy], why: Reason, until: Instant | None = None) -> Decision:
        """Of the policy itself."""
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
    """`node`: with the taints that it would bear."""
    is_plain = node is facts.node and not facts.is_drained
    marks = (None, None) if is_plain else (candidate_mark(node), draining_mark(node))
    return DrainNode(facts.name, facts.pool, facts.is_ready, node, policy, *marks)
