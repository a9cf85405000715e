"""Devices as Kubernetes itself knows them (dynamic resource allocation)."""

import msgspec

from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.pod import NodeSelector
from reconciler.model.parsers import Int64


class AllocatedDevice(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A device that a claim was given."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    binding_conditions: tuple[str, ...] = ()


class Allocated(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """All devices of a claim."""

    results: tuple[AllocatedDevice, ...] = ()


class Allocation(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How a claim was met, and on which nodes; on any where none are named."""

    devices: Allocated = Allocated()
    node_selector: NodeSelector | None = None


class Reserved(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A pod that uses the claim."""

    name: str = ""
    uid: str = ""
    resource: str = ""


class ResourceClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What came of a claim."""

    allocation: Allocation | None = None
    reserved_for: tuple[Reserved, ...] = ()


class ResourceClaim(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A pod's claim for devices."""

    metadata: Metadata
    status: ResourceClaimStatus = ResourceClaimStatus()


class SliceDevice(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A device on offer."""

    name: str = ""


class SlicePool(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The pool of devices that a slice is part of."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class SliceSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What a slice offers, and where."""

    driver: str = ""
    node_name: str = ""
    pool: SlicePool = SlicePool()
    devices: tuple[SliceDevice, ...] = ()


class ResourceSlice(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Devices on offer."""

    metadata: Metadata
    spec: SliceSpec = SliceSpec()
