"""What volumes a node can hold: the drivers on it, how many they bear, and what they hold already."""

import msgspec

from reconciler.model.cluster.metadata import Metadata
from reconciler.model.parsers import Int32


class DriverAllocatable(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How many volumes a driver bears on a node; nothing where there is no limit."""

    count: Int32 | None = None


class NodeDriver(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A driver on a node."""

    name: str = ""
    allocatable: DriverAllocatable = DriverAllocatable()


class NodeDrivers(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """All drivers of a node."""

    drivers: tuple[NodeDriver, ...] = ()


class CsiNode(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What drivers say of a node; it has the node's name."""

    metadata: Metadata
    spec: NodeDrivers = NodeDrivers()


class DriverSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How a driver is to be treated."""

    storage_capacity: bool = False


class CsiDriver(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A driver, by the name that storage classes know it by."""

    metadata: Metadata
    spec: DriverSpec = DriverSpec()


class AttachmentSource(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What is attached."""

    persistent_volume_name: str = ""


class AttachmentSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """By whom, what, and to which node."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A volume on a node, or on its way there or away."""

    metadata: Metadata
    spec: AttachmentSpec = AttachmentSpec()
