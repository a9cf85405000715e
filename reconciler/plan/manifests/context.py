"""Owner of what one plan has looked up: objects and pools by name, and the drift that there is already."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.guards.approvals import Approvals
from reconciler.plan.karpenter.disruption_forecast import Surroundings, fates
from reconciler.plan.karpenter.drift import Drift
from reconciler.plan.nodes.eviction import PodBudgets

NODE_POOL = "NodePool"

Key = tuple[str, str, str]  # kind, namespace, name

# What must have been read to tell how many nodes an edit or a deletion takes, and what runs on them.
_FLEET = ("nodes", "pods", "nodeclaims.karpenter.sh")

# The titles of what is kept whole, by kind.
_TITLES: dict[str, tuple[str, ...]] = {
    each.kind: tuple(
        resource_kind.title
        for resource_kind in RESOURCE_KINDS
        if resource_kind.kind == each.kind and resource_kind.type is Unstructured
    )
    for each in RESOURCE_KINDS
    if each.type is Unstructured
}


class ManifestContext:
    """Inputs and fleet, and what follows from both alone."""

    def __init__(self, inputs: Inputs, fleet: Fleet) -> None:
        self.inputs = inputs
        self.fleet = fleet
        observed = inputs.observed
        # Smart pods are made by another planner, as they are needed.
        kept = (each for each in observed.kept if not (each.kind == "Pod" and names.COMPONENT in each.metadata.labels))
        self.objects: dict[Key, Unstructured] = {key_of(each): each for each in (*observed.node_pools, *kept)}
        self.pools: dict[str, Declared[GpuPool]] = {pool.name: pool for pool in inputs.desired.pools}

    @cached_property
    def approvals(self) -> Approvals:
        """The ChangeApprovals that hold now."""
        return Approvals(self.inputs)

    @cached_property
    def own_namespaces(self) -> frozenset[str]:
        """Where nobody else is to have rights to write; nothing stands for objects without a namespace."""
        smart_pods = (pool.spec.smart_pods.namespace for pool in self.pools.values())
        return frozenset({"", names.OWN_NAMESPACE, *smart_pods})

    @property
    def environment(self) -> str:
        """The one that is planned for."""
        return self.inputs.desired.environment

    def other_environment(self, live: Unstructured) -> str:
        """The one that keeps the object, if it is another; nothing where the object does not say."""
        keeper = live.metadata.annotations.get(names.ENVIRONMENT, self.environment)
        return keeper if keeper != self.environment else ""

    def why_unread(self, kind: str) -> str:
        """Why objects of the kind could not be read; nothing when they could."""
        if kind not in _TITLES:
            return f"{kind} is no kind that is looked at"
        return self.inputs.observed.why_unread(*_TITLES[kind])

    def is_absent(self, kind: str) -> bool:
        """Whether the cluster serves no such kind."""
        return any(title in self.inputs.observed.absent for title in _TITLES.get(kind, ()))

    def is_taken(self, key: Key) -> bool:
        """Whether someone else has an object of this name; of kinds that are seen only where they are ours, nobody."""
        return key in self._strangers

    @cached_property
    def why_fleet_unread(self) -> str:
        """Why nobody can tell what runs on a pool's nodes; nothing when one can."""
        return self.inputs.observed.why_unread(*_FLEET)

    def current_consequences(
        self, node_pool: Unstructured, pool: str, after_spec: Mapping[str, Any] | None = None
    ) -> tuple[Consequence, ...]:
        """What Karpenter does to the pool's nodes already, without any change; or once an edit that drifts none of them
        opens its budgets."""
        drifted = tuple(each.name for each in self.fleet.drifted_claims_of(node_pool.name))
        if not drifted or self.why_fleet_unread:
            return ()
        return self.fates(node_pool, after_spec or node_pool.spec, Drift(already=drifted), pool)

    def fates(
        self, node_pool: Unstructured, after_spec: Mapping[str, Any] | None, drift: Drift, pool: str
    ) -> tuple[Consequence, ...]:
        """What becomes of the pool's nodes; `after_spec` is None where the NodePool is deleted."""
        around = Surroundings(
            self.fleet, self.inputs.now, self._budgets, pool, self.pools.get(pool), self.inputs.budget
        )
        return fates(node_pool, after_spec, drift, around)

    @cached_property
    def _strangers(self) -> frozenset[Key]:
        """What is not kept whole because it is not ours. Only asked for when something is to be made."""
        observed = self.inputs.observed
        seen = [("Pod", each.metadata) for each in observed.pods]
        seen += [("PodDisruptionBudget", each.metadata) for each in observed.budgets]
        return frozenset(
            (kind, each.namespace, each.name) for kind, each in seen if each.labels.get(names.MANAGED) != "true"
        )

    @cached_property
    def _budgets(self) -> PodBudgets:
        return PodBudgets(self.inputs.observed.budgets)


def key_of(whole: Unstructured) -> Key:
    return whole.kind, whole.metadata.namespace, whole.name
