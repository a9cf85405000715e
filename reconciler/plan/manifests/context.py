"""Lookups of one plan: objects and pools by name, and existing drift."""

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

# Kinds required to count the nodes affected by an edit or a deletion, and their pods.
_FLEET = ("nodes", "pods", "nodeclaims.karpenter.sh")

# Titles of completely stored objects, by kind.
_KEPT_WHOLE = tuple(each for each in RESOURCE_KINDS if each.type is Unstructured)
_TITLES = {each.kind: tuple(one.title for one in _KEPT_WHOLE if one.kind == each.kind) for each in _KEPT_WHOLE}


class ManifestContext:
    """Inputs and fleet, with data derived from them."""

    def __init__(self, inputs: Inputs, fleet: Fleet) -> None:
        self.inputs = inputs
        self.fleet = fleet
        observed = inputs.observed
        # Another planner creates smart pods on demand.
        kept = (each for each in observed.kept if not (each.kind == "Pod" and names.COMPONENT in each.metadata.labels))
        self.objects: dict[Key, Unstructured] = {key_of(each): each for each in (*observed.node_pools, *kept)}
        self.pools: dict[str, Declared[GpuPool]] = {pool.name: pool for pool in inputs.desired.pools}

    @cached_property
    def approvals(self) -> Approvals:
        return Approvals(self.inputs)

    @cached_property
    def own_namespaces(self) -> frozenset[str]:
        """Namespaces in which only reconciler should have rights to write; empty text for cluster-scoped objects."""
        smart_pods = (pool.spec.smart_pods.namespace for pool in self.pools.values())
        return frozenset({"", names.OWN_NAMESPACE, *smart_pods})

    @property
    def environment(self) -> str:
        return self.inputs.desired.environment

    def other_environment(self, live: Unstructured) -> str:
        """The other environment that owns the object; empty if unknown or the planned one."""
        keeper = live.metadata.annotations.get(names.ENVIRONMENT, self.environment)
        return keeper if keeper != self.environment else ""

    def why_unread(self, kind: str) -> str:
        """Why objects of the kind could not be read; empty if they were read."""
        if kind not in _TITLES:
            return f"{kind} is not a kind that reconciler reads"
        return self.inputs.observed.why_unread(*_TITLES[kind])

    def is_absent(self, kind: str) -> bool:
        """Whether the cluster does not serve the kind."""
        return any(title in self.inputs.observed.absent for title in _TITLES.get(kind, ()))

    def is_taken(self, key: Key) -> bool:
        """Whether someone else has an object of this name; always false if only our objects of the kind are read."""
        return key in self._strangers

    @cached_property
    def why_fleet_unread(self) -> str:
        """Why pods and nodes of a pool are unknown; empty if known."""
        return self.inputs.observed.why_unread(*_FLEET)

    def current_consequences(
        self, node_pool: Unstructured, pool: str, after_spec: Mapping[str, Any] | None = None
    ) -> tuple[Consequence, ...]:
        """Disruptions of the pool's nodes by Karpenter without any change, or after an edit that only opens budgets."""
        drifted = tuple(each.name for each in self.fleet.drifted_claims_of(node_pool.name))
        if not drifted or self.why_fleet_unread:
            return ()
        return self.fates(node_pool, after_spec or node_pool.spec, Drift(already=drifted), pool)

    def fates(
        self, node_pool: Unstructured, after_spec: Mapping[str, Any] | None, drift: Drift, pool: str
    ) -> tuple[Consequence, ...]:
        """Consequences for the pool's nodes; `after_spec` is None if the NodePool is deleted."""
        around = Surroundings(
            self.fleet, self.inputs.now, self._budgets, pool, self.pools.get(pool), self.inputs.budget
        )
        return fates(node_pool, after_spec, drift, around)

    @cached_property
    def _strangers(self) -> frozenset[Key]:
        """Objects of others, which are not stored completely. Only computed when an object must be created."""
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
