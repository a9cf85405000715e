"""What GpuClaims ask of the nodes that their pods are on, and in which pools that is to be had.

A pool has what a claim asks for if it is the one that the claim names, where it names one, and if its GPUs are of the
model, have the memory, and are as many on a node. What a claim leaves open is left open; what can't be read, or can't
be foretold, is no reason to think that it would be had elsewhere.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.policy.gpu_claim import ClaimedDevices
from reconciler.model.policy.gpu_pool import Devices, GpuPool
from reconciler.model.quantity import Quantity
from reconciler.plan.capacity.refusals import ClaimState, ClaimTrouble, ClaimUnseen, ClaimUnusable

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
