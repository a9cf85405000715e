"""Context of smart pod planning for one pool."""

from functools import cached_property

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.node import NodeClaim
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared, SmartPod
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import Shortage
from reconciler.model.plan.decision import Action, CodeFacts, Decision, Hold, Reason, Ref, pod_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.capacity.offerings import LaunchOptions, digest_of, launch_options
from reconciler.plan.capacity.requests import Requested, startup_taints
from reconciler.plan.capacity.wanted_nodes import Requestable, WantedNode
from reconciler.plan.draft import Draft
from reconciler.plan.smart_pods.reasons import PLANNER


class SmartPodContext(msgspec.Struct, frozen=True, dict=True):
    """Shared lookups for one pool. Mutable cache."""

    inputs: Inputs
    draft: Draft
    pool: Declared[GpuPool]

    @property
    def now(self) -> Instant:
        return self.inputs.now

    @property
    def fleet(self) -> Fleet:
        return self.draft.fleet

    @cached_property
    def requested(self) -> tuple[Requested, ...]:
        return self.draft.requests.of(self.pool.name)

    @cached_property
    def spec_digest(self) -> str:
        return digest_of(self.pool.spec)

    @cached_property
    def ruled_out(self) -> dict[bytes, tuple[str, ...]]:
        """Hostnames of nodes that would take a smart pod, by the spec of the smart pod. A cache."""
        return {}

    @property
    def has_node_pool(self) -> bool:
        """Whether the NodePool exists, so that Karpenter can buy nodes for the pool."""
        objects = (each for each in self.inputs.observed.node_pools if each.name == self.pool.name)
        return any(not each.metadata.deletion_timestamp for each in objects)

    @property
    def lacking_since(self) -> Instant:
        """Since when Karpenter could have bought nodes for visible pods; now if the demand is new."""
        before = (each.since for each in self.inputs.memory.lacking if each.pool == self.pool.name)
        return next(before, self.now)

    @cached_property
    def outlook(self) -> LaunchOptions:
        return self.outlook_with(())

    def outlook_with(self, further: tuple[Shortage, ...]) -> LaunchOptions:
        """Launch options with further shortages of this plan."""
        return launch_options(self.inputs, self.fleet, self.pool, further)

    def wanted(self, *requestable: Requestable) -> list[WantedNode]:
        """Nodes that the pool lacks."""
        nodes = self.draft.capacity.wanted_by_pool.get(self.pool.name, ())
        return [each for each in nodes if each.requestable in requestable]

    @cached_property
    def others_coming(self) -> bool:
        """Whether machines are in flight that no smart pod requested, and that may serve a smart pod."""
        used = self.draft.requests.used_claims_of(self.pool.name)
        coming = (*self.fleet.nodeless_claims_of(self.pool.name), *self.fleet.claims_initializing(self.pool.name))
        return any(not each.metadata.leaving and each.name not in used for each in coming)

    @cached_property
    def launching_elsewhere(self) -> list[NodeClaim]:
        """Machines of NodePools without a GpuPool whose type is unknown: they may be for the waiting pods of
        this pool.
        """
        declared = {each.name for each in self.inputs.desired.pools}
        others = (each.name for each in self.inputs.observed.node_pools if each.name not in declared)
        claims = (each for name in others for each in self.fleet.nodeless_claims_of(name))
        return [each for each in claims if not each.metadata.leaving and not each.status.allocatable]

    @cached_property
    def passing(self) -> frozenset[tuple[str, str]]:
        """Startup taints of other controllers."""
        return startup_taints(self.inputs.observed, self.pool.name)

    def template(self, instance_type: str) -> SmartPod | None:
        """Smart pod template; None for inputs that are older than smart pods."""
        smart_pods = (each for each in self.inputs.desired.smart_pods if each.pool == self.pool.name)
        return next((each for each in smart_pods if each.instance_type == instance_type), None)

    def why(self, facts: CodeFacts) -> Reason:
        """Reason whose origin is the GpuPool."""
        return Reason(facts, self.pool.origin())

    def hold(self, why: Reason, until: Instant | None = None) -> Decision:
        """Hold on the pool."""
        return Decision(PLANNER, Ref("GpuPool", "", self.pool.name), Hold(until), why, self.pool.name)

    def act(self, pod: Pod, act: Action | Hold, why: Reason, after: tuple[Ref, ...] = ()) -> Decision:
        return Decision(PLANNER, pod_ref(pod), act, why, self.pool.name, after=after)
