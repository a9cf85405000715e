"""Demand for capacity: GpuClaims, gangs, waiting pods, and reserved places for successors of evicted pods."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from reconciler.fleet.devices.free_devices import ClaimRequest, ClaimRequests
from reconciler.fleet.gpu_claims import claimed_devices, serving_pools
from reconciler.model import names
from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later, moment
from reconciler.model.plan.drain_memory import Evicted
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.capacity.refusals import ClaimState, ClaimTrouble, ClaimUnseen, ClaimUnusable
from reconciler.plan.capacity.requests import SmartPodIdentity
from reconciler.plan.recent_evictions import owner_of

# --- GpuClaims: what they request of a node, and which pools can serve them.
#
# A claim that can't be read, or whose result can't be predicted, is not assumed to be served elsewhere.

Key = tuple[str, str]  # namespace and name
Spec = dict[str, Any]


class ClaimDoubt(msgspec.Struct, frozen=True, gc=False):
    """Why it is unknown which other nodes have the GPUs of a pod's claim."""

    kind: Literal["absent", "suspended", "unreadable", "oneIsland", "otherCount"]
    claimed: int = 0  # GPUs that the claim requests
    asked: int = 0  # GPUs that the pod requests from its node


class GpuClaimIndex:
    """Index of the observed GpuClaims, and of the declared pools that can serve them."""

    def __init__(self, observed: Observed, pools: Iterable[Declared[GpuPool]]) -> None:
        self._specs = {(each.metadata.namespace, each.name): each.spec for each in gpu_claims(observed.policies)}
        self._pools = tuple(pools)
        self._unread = observed.unread_among("gpuclaims.gpu.scheduling")
        self._are_islands_unread = observed.unread_among("gpunodestatuses.gpu.scheduling") is not None

    def why_unknown(self, pod: Pod) -> ClaimDoubt | None:
        """Why it is unknown which other nodes have the GPUs of the pod's claim; None if that is known, or the pod has
        no claim.
        """
        claim = pod.metadata.annotations.claim
        if not claim:
            return None
        spec = self._specs.get((pod.metadata.namespace, claim))
        if spec is None:
            return ClaimDoubt("absent")
        if spec.get("suspend"):
            return ClaimDoubt("suspended")
        devices = claimed_devices(spec)
        if devices is None:
            return ClaimDoubt("unreadable")
        if devices.policy == "requireContiguous" and self._are_islands_unread:
            return ClaimDoubt("oneIsland")
        return ClaimDoubt("otherCount", devices.count, pod.gpus) if devices.count != pod.gpus else None

    def why_nothing_is_bought(self, pod: Pod) -> ClaimTrouble | None:
        """Why no capacity is bought for the pod and its gate is not removed; None if the claim can be served, or the
        pod has no claim.
        """
        claim = pod.metadata.annotations.claim
        if not claim:
            return None
        spec = self._specs.get((pod.metadata.namespace, claim))
        if spec is None:
            return ClaimUnusable(ClaimState.ABSENT) if self._unread is None else ClaimUnseen(self._unread)
        if spec.get("suspend"):
            return ClaimUnusable(ClaimState.SUSPENDED)
        return None if claimed_devices(spec) is not None else ClaimUnusable(ClaimState.UNREADABLE)

    @cached_property
    def requests(self) -> ClaimRequests:
        """The readable claims, with the pools that can serve them."""
        by_claim = {}
        for key, spec in self._specs.items():
            devices = claimed_devices(spec)
            if devices is not None:
                pools = serving_pools(spec, devices, self._pools)
                by_claim[key] = ClaimRequest(devices, frozenset(each.name for each in pools))
        return ClaimRequests(by_claim, {each.name: each.spec.devices for each in self._pools})


# --- Gangs: pods that start together or not at all, because their GpuClaims share a gangRef.

Gang = tuple[str, str]  # namespace and gangRef


def title_of(gang: Gang) -> str:
    """Namespace and gangRef: team-a/llama."""
    return "/".join(gang)


class GangIndex:
    """Index of gangs, from the observed GpuClaims."""

    def __init__(self, observed: Observed) -> None:
        self._of_claim: Mapping[tuple[str, str], str] = {
            (each.metadata.namespace, each.name): str(each.spec["gangRef"])
            for each in gpu_claims(observed.policies)
            if each.spec.get("gangRef")
        }

    @property
    def are_any(self) -> bool:
        return bool(self._of_claim)

    def of(self, pod: Pod) -> Gang | None:
        """Gang of the pod; None without a gang."""
        claim = pod.metadata.annotations.claim
        gang = self._of_claim.get((pod.metadata.namespace, claim)) if claim else None
        return (pod.metadata.namespace, gang) if gang else None

    def broken_by(self, left: Iterable[Pod]) -> frozenset[Gang]:
        """Gangs that can't start if these pods can't start."""
        return frozenset(gang for pod in left if (gang := self.of(pod)) is not None)


# --- Pods that wait for capacity: pods that Karpenter sees, and pods behind the capacity gate, which Karpenter ignores.


def waits(pod: Pod, identity: SmartPodIdentity) -> bool:
    """Whether the pod needs new capacity if no node has room. Smart pods do not count: they only request machines for
    others.
    """
    return (is_gated(pod) or is_unschedulable(pod)) and not identity.is_smart(pod)


def is_gated(pod: Pod) -> bool:
    """Whether the capacity gate is the pod's only scheduling gate. Pods with other gates wait for something else than
    capacity.
    """
    gates = pod.spec.scheduling_gates
    return bool(gates) and not pod.metadata.leaving and all(each.name == names.CAPACITY_GATE for each in gates)


def has_our_gate(pod: Pod) -> bool:
    """Whether the pod has the capacity gate, alone or beside other gates."""
    return not pod.metadata.leaving and any(each.name == names.CAPACITY_GATE for each in pod.spec.scheduling_gates)


def asks_for_gpus(pod: Pod) -> bool:
    """Whether the pod requests GPUs: as a resource, by a GpuClaim, or by a ResourceClaim, which may be for GPUs."""
    return bool(pod.gpus or pod.metadata.annotations.claim or pod.spec.resource_claims)


def is_coming(pod: Pod, identity: SmartPodIdentity) -> bool:
    """Whether the scheduler is about to place the pod: the pod has no gates and was not reported unschedulable."""
    is_kept = bool(pod.spec.scheduling_gates) or pod.metadata.leaving or identity.is_smart(pod)
    return not is_kept and not is_unschedulable(pod)


def is_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler found no place for the pod, so that Karpenter buys a node for the pod too."""
    if not pod.status.conditions or pod.metadata.leaving or pod.spec.scheduling_gates:
        return False
    if pod.status.nominated_node_name or pod.stays_with_its_node:
        return False
    return any(
        each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable"
        for each in pod.status.conditions
    )


def unschedulable_since(pod: Pod) -> Instant | None:
    """Since when the pod is unschedulable, and so visible to Karpenter; None if the pod is not."""
    if not is_unschedulable(pod):
        return None
    written = next(each.last_transition_time for each in pod.status.conditions if each.type == "PodScheduled")
    return moment(written or pod.metadata.creation_timestamp) or Instant(0)


# --- Reservations: places for the successors of recently evicted pods.
#
# A pod is evicted only after a destination was found, and the destination is remembered. A pod of the same owner that
# was created since the eviction counts as the successor. The scheduler may report the successor as unschedulable while
# the evicted pod is terminating, for example because both may not run in one zone. So for a minute after the eviction,
# an unschedulable successor is no sign of missing capacity.

HOLDS_MS = 60_000


class PodReservation(msgspec.Struct, frozen=True, gc=False):
    """A waiting pod, the evicted pod that it succeeds, and its reserved node."""

    pod: Pod
    before: str  # uid of the evicted pod
    left: str  # node that the evicted pod left
    home: str
    until: Instant


def promises(inputs: Inputs, waiting: Iterable[Pod]) -> list[PodReservation]:
    """Reservations of waiting pods. Each eviction has one successor, the first by name."""
    by_owner: defaultdict[str, list[Evicted]] = defaultdict(list)
    for each in inputs.memory.drained.evicted:
        if each.owner and each.home and each.at <= inputs.now < each.at + HOLDS_MS:
            by_owner[each.owner].append(each)
    pod_reservations = []
    for pod in sorted(waiting, key=lambda each: (each.metadata.namespace, each.name)) if by_owner else ():
        evicted = by_owner.get(owner_of(pod), [])
        before = next((each for each in evicted if _came_after(pod, each)), None)
        if before is not None:
            evicted.remove(before)
            pod_reservations.append(
                PodReservation(pod, before.uid, before.node, before.home, later(before.at, HOLDS_MS))
            )
    return pod_reservations


def _came_after(pod: Pod, evicted: Evicted) -> bool:
    """Whether the pod was created after the eviction, to the second, because creation timestamps have whole seconds."""
    made = moment(pod.metadata.creation_timestamp)
    return made is not None and made >= evicted.first // 1_000 * 1_000
