"""What GpuClaims request, and which declared pools can serve them.

A pool can serve a claim if the claim names that pool or no pool, and if the pool's GPUs have the requested model and
memory and each node has enough of them. Fields that a claim leaves out match any pool.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.model.desired import Declared
from reconciler.model.policy.gpu import ClaimedDevices, Devices, GpuPool
from reconciler.model.quantity import Quantity

Spec = Mapping[str, Any]


def claimed_devices(spec: Spec) -> ClaimedDevices | None:
    """The requested GPUs of a claim's unstructured spec; None if unreadable. Another version of the CRD may have other
    fields, so each field is checked.
    """
    said = spec.get("devices")
    if not isinstance(said, dict) or type(said.get("count")) is not int or said["count"] < 1:
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


def serving_pools(
    spec: Spec, claimed: ClaimedDevices, pools: Iterable[Declared[GpuPool]]
) -> tuple[Declared[GpuPool], ...]:
    """The pools that can serve the claim, in the given order."""
    named = spec.get("poolName")
    return tuple(each for each in pools if named in {None, each.name} and has_devices(each.spec.devices, claimed))


def has_devices(devices: Devices, claimed: ClaimedDevices) -> bool:
    """Whether a node with these GPUs has the requested ones."""
    return (
        claimed.model in {None, devices.model}
        and claimed.count <= devices.count
        and (claimed.memory is None or claimed.memory.milli <= devices.memory.milli)
    )
