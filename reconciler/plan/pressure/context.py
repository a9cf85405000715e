"""Lookups for the migrations of one plan: ledgers, pods, and the limits of evictions."""

from collections.abc import Mapping

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Action, Decision, Facts, Hold, Reason, pod_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import PressurePolicy
from reconciler.plan.draft import Draft
from reconciler.plan.nodes.eviction import Remaining
from reconciler.plan.pressure.memory import Migration
from reconciler.plan.pressure.reasons import PLANNER, GangNotMigrated, PodOfNodeStays, PodStaysUnderPressure
from reconciler.plan.single_evictions import SingleEvictions


class PressedPool:
    """A pool with a PressurePolicy in force."""

    def __init__(self, name: str, policy: Declared[PressurePolicy]) -> None:
        self.name, self.policy = name, policy

    @property
    def migrates(self) -> bool:
        """Whether pods are moved. Without live migration, Auto evicts."""
        return self.policy.spec.migration != "None"

    def reason(self, facts: Facts, field: str = "") -> Reason:
        return Reason(facts, self.policy.origin(f"spec.{field}" if field else ""))

    def decision(self, pod: Pod, act: Action | Hold, reason: Reason) -> Decision:
        return Decision(PLANNER, pod_ref(pod), act, reason, self.name)


class PressureContext:
    """Mutable: budgets are used up."""

    def __init__(
        self, inputs: Inputs, draft: Draft, ledgers: Mapping[str, NodeLedger], pods: Mapping[str, Pod]
    ) -> None:
        self.inputs, self.draft, self.now = inputs, draft, inputs.now
        self.ledgers, self.pods = ledgers, pods
        self.evictions = SingleEvictions(inputs, draft)

    @property
    def loads(self) -> Mapping[str, int]:
        return self.inputs.pressure.loads if self.inputs.pressure is not None else {}

    def why_not(self, pool: PressedPool, node: Node, pod: Pod, remaining: Remaining) -> Reason | None:
        """Why the pod stays; None if the pod may be evicted."""
        subject = pod_ref(pod)
        if not pod.counts:
            return pool.reason(PodOfNodeStays(node.name, subject))
        gang = self.draft.gangs.of(pod)
        if gang is not None:
            return pool.reason(GangNotMigrated(node.name, subject, "/".join(gang)))
        facts = self.evictions.why_not(node, pod, remaining)
        return pool.reason(PodStaysUnderPressure(node.name, subject, Reason(facts))) if facts is not None else None

    def ends(self, node: Node, pod: Pod, migration: Migration) -> Instant:
        """When the migration has failed, if the pod is still there."""
        notice = self.evictions.notice_ends(node, pod, migration.since)
        begun = max(migration.since, notice, migration.evicted_at or 0)
        return later(Instant(begun), self.evictions.patience_ms(node))
