"""Demand for capacity: what GpuClaims ask for, gangs, pods that wait, and places reserved for successors of
evicted pods.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from reconciler.model import names
from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later, moment
from reconciler.model.plan.drain_memory import Evicted
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import ClaimedDevices, Devices, GpuPool
from reconciler.model.quantity import Quantity
from reconciler.plan.capacity.refusals import ClaimState, ClaimTrouble, ClaimUnseen, ClaimUnusable
from reconciler.plan.capacity.requests import SmartPodIdentity
from reconciler.plan.recent_evictions import owner_of

# --- What GpuClaims ask of the nodes that their pods are on, and in which pools that is to be had.
#
# A pool has what a claim asks for if it is the one that the claim names, where it names one, and if its GPUs are of the
# model, have the memory, and are as many on a node. What a claim leaves open is left open; what can't be read, or can't
# be foretold, is no reason to think that it would be had elsewhere.

Key = tuple[str, str]  # namespace and name
Spec = dict[str, Any]


class ClaimDoubt(msgspec.Struct, frozen=True, gc=False):
    """Why it can't be told where else a pod would have the GPUs of its claim."""

    kind: Literal["absent", "suspended", "unreadable", "oneIsland", "otherCount"]
    claimed: int = 0  # GPUs
    asked: int = 0  # GPUs that the pod asks its node for


class GpuClaimIndex:
    """As they were seen, against the pools as they are declared."""

    def __init__(self, observed: Observed, pools: Iterable[Declared[GpuPool]]) -> None:
        self._specs = {(each.metadata.namespace, each.name): each.spec for each in gpu_claims(observed.policies)}
        self._pools = tuple(pools)
        self._unread = observed.unread_among("gpuclaims.gpu.scheduling")

    def why_unknown(self, pod: Pod) -> ClaimDoubt | None:
        """Why it can't be told where else the pod would have its GPUs; None where it can, or it has no claim."""
        claim = pod.metadata.annotations.claim
        if not claim:
            return None
        spec = self._specs.get((pod.metadata.namespace, claim))
        if spec is None:
            return ClaimDoubt("absent")
        if spec.get("suspend"):
            return ClaimDoubt("suspended")
        devices = _devices(spec)
        if devices is None:
            return ClaimDoubt("unreadable")
        if devices.policy == "requireContiguous":
            return ClaimDoubt("oneIsland")
        return ClaimDoubt("otherCount", devices.count, pod.gpus) if devices.count != pod.gpus else None

    def why_nothing_is_bought(self, pod: Pod) -> ClaimTrouble | None:
        """Why no capacity is bought for the pod, and its gate is not lifted; None if its claim can be served, or if
        the pod has no claim."""
        claim = pod.metadata.annotations.claim
        if not claim:
            return None
        spec = self._specs.get((pod.metadata.namespace, claim))
        if spec is None:
            return ClaimUnusable(ClaimState.ABSENT) if self._unread is None else ClaimUnseen(self._unread)
        if spec.get("suspend"):
            return ClaimUnusable(ClaimState.SUSPENDED)
        return None if _devices(spec) is not None else ClaimUnusable(ClaimState.UNREADABLE)

    @cached_property
    def pools(self) -> Mapping[Key, frozenset[str]]:
        """By claim, the names of pools that have what it asks for; without claims that can't be read."""
        result = {}
        for key, spec in self._specs.items():
            devices = _devices(spec)
            if devices is not None:
                named = spec.get("poolName")
                result[key] = frozenset(
                    each.name for each in self._pools if named in {None, each.name} and _has(each.spec.devices, devices)
                )
        return result


def _has(devices: Devices, claimed_devices: ClaimedDevices) -> bool:
    return (
        claimed_devices.model in {None, devices.model}
        and claimed_devices.count <= devices.count
        and (claimed_devices.memory is None or claimed_devices.memory.milli <= devices.memory.milli)
    )


def _devices(spec: Spec) -> ClaimedDevices | None:
    """None where they can't be read: whoever has rights to write them may have been told of other fields."""
    said = spec.get("devices")
    if not isinstance(said, dict) or type(said.get("count")) is not int:
        return None
    policy, model, memory = said.get("policy", "any"), said.get("model"), said.get("memory")
    if policy not in ("any", "contiguous", "requireContiguous") or not isinstance(spec.get("poolName"), str | None):
        return None
    if not isinstance(model, str | None):
        return None
    try:
        least = None if memory is None else Quantity.parse(str(memory))
    except ValueError:
        return None
    return ClaimedDevices(count=said["count"], policy=policy, model=model, memory=least)


# --- Pods that start together or not at all: those whose GpuClaims share a gangRef.

Gang = tuple[str, str]  # namespace and gangRef


def title_of(gang: Gang) -> str:
    """team-a/llama."""
    return "/".join(gang)


class GangIndex:
    """By the GpuClaims as they were seen."""

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
        """None where it is of none."""
        claim = pod.metadata.annotations.claim
        gang = self._of_claim.get((pod.metadata.namespace, claim)) if claim else None
        return (pod.metadata.namespace, gang) if gang else None

    def broken_by(self, left: Iterable[Pod]) -> frozenset[Gang]:
        """The gangs that can't start if these pods can't."""
        return frozenset(gang for pod in left if (gang := self.of(pod)) is not None)


# --- Who waits for capacity: pods that Karpenter sees, and pods behind our gate, which it does not.


def waits(pod: Pod, identity: SmartPodIdentity) -> bool:
    """Whether capacity is missing for it, if no node has room. A smart pod is a means, and no end."""
    return (is_gated(pod) or is_unschedulable(pod)) and not identity.is_smart(pod)


def is_gated(pod: Pod) -> bool:
    """Whether our gate alone keeps it from being scheduled; what others wait for is not for us to buy."""
    gates = pod.spec.scheduling_gates
    return bool(gates) and not pod.metadata.leaving and all(each.name == names.CAPACITY_GATE for each in gates)


def has_our_gate(pod: Pod) -> bool:
    """Whether it waits behind our gate, alone or beside the gates of others."""
    return not pod.metadata.leaving and any(each.name == names.CAPACITY_GATE for each in pod.spec.scheduling_gates)


def asks_for_gpus(pod: Pod) -> bool:
    """Whether the pod asks for GPUs: as a resource, by a GpuClaim, or by a claim of Kubernetes that may be for GPUs."""
    return bool(pod.gpus or pod.metadata.annotations.claim or pod.spec.resource_claims)


def is_coming(pod: Pod, identity: SmartPodIdentity) -> bool:
    """Whether a scheduler is about to place it: nothing keeps it back, and nobody has said that there is no room."""
    is_kept = bool(pod.spec.scheduling_gates) or pod.metadata.leaving or identity.is_smart(pod)
    return not is_kept and not is_unschedulable(pod)


def is_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler found no place for it, and Karpenter would buy for it as well."""
    if not pod.status.conditions or pod.metadata.leaving or pod.spec.scheduling_gates:
        return False
    if pod.status.nominated_node_name or pod.stays_with_its_node:
        return False
    return any(
        each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable"
        for each in pod.status.conditions
    )


def unschedulable_since(pod: Pod) -> Instant | None:
    """Since when Karpenter has seen it; None where it does not."""
    if not is_unschedulable(pod):
        return None
    written = next(each.last_transition_time for each in pod.status.conditions if each.type == "PodScheduled")
    return moment(written or pod.metadata.creation_timestamp) or Instant(0)


# --- Who is on the way to a place that was found for it: the successors of pods that were evicted lately.
#
# Whoever evicts a pod has found a place for it, and remembers where. A pod of the same owner that was made since is
# taken for its successor. It may be told that there is no room while the one before it is on its way out, since both
# may not stand in one zone, say: for a minute from the eviction that is no sign that capacity is missing.

HOLDS_MS = 60_000


class PodReservation(msgspec.Struct, frozen=True, gc=False):
    """A pod that waits, whom it comes after, and where it is to go."""

    pod: Pod
    before: str  # uid
    left: str  # the node that it leaves
    home: str
    until: Instant


def promises(inputs: Inputs, waiting: Iterable[Pod]) -> list[PodReservation]:
    """Each eviction has one successor, the first by name."""
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
    """To the second, as creation is told."""
    made = moment(pod.metadata.creation_timestamp)
    return made is not None and made >= evicted.first // 1_000 * 1_000
