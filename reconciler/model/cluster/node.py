"""Nodes with the volumes they hold, NodeClaims, and the classes of their machines."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, Metadata
from reconciler.model.parsers import Int32
from reconciler.model.quantity import whole_number

_UPGRADE_DONE = "upgrade-done"


class NodeTaint(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Keeps pods away that do not tolerate it."""

    key: str
    effect: str
    value: str = ""
    time_added: str = ""


class NodeSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is wanted of a node."""

    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] = ()
    provider_id: str = msgspec.field(name="providerID", default="")


class NodeStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What a node has and how it is."""

    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A machine of the cluster."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def pool(self) -> str:
        """The pool it belongs to; nothing when it is nobody's."""
        labels = self.metadata.labels
        return labels.get(names.KARPENTER_POOL) or labels.get(names.POOL, "")

    @property
    def instance_type(self) -> str:
        return self.metadata.labels.get(names.INSTANCE_TYPE, "")

    @property
    def capacity_type(self) -> str:
        return self.metadata.labels.get(names.CAPACITY_TYPE, "on-demand")

    @property
    def gpus(self) -> int:
        """GPUs that pods may ask for."""
        return whole_number(self.status.allocatable.get(names.NVIDIA_GPU, "0"))

    @property
    def is_ready(self) -> bool:
        for each in self.status.conditions:  # asked for so often that a generator would cost more than the look
            if each.type == "Ready":
                return each.status == "True"
        return False

    @property
    def driver_upgrade(self) -> str:
        """The state of an upgrade of its GPU driver that is not over; else nothing."""
        state = self.metadata.labels.get(names.UPGRADE_STATE, "")
        return "" if state == _UPGRADE_DONE else state

    @property
    def is_being_removed(self) -> bool:
        """Whether somebody takes it away, we included."""
        return self.metadata.leaving or any(each.key in names.TAKING for each in self.spec.taints)

    def taint(self, key: str) -> NodeTaint | None:
        for each in self.spec.taints:  # as above
            if each.key == key:
                return each
        return None


# --- What volumes a node can hold: the drivers on it, how many they bear, and what they hold already.


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


# --- What Karpenter keeps: NodeClaims, and the classes of their machines.


class ClassRef(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The class of a machine."""

    group: str = ""
    kind: str = ""
    name: str = ""


class NodeClaimRequirement(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A demand on the labels of a machine; only of which label is gone by."""

    key: str = ""


class ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What was asked for."""

    node_class_ref: ClassRef = ClassRef()
    expire_after: str = ""
    termination_grace_period: str = ""
    requirements: tuple[NodeClaimRequirement, ...] = ()


class NodeClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What came of it."""

    node_name: str = ""
    provider_id: str = msgspec.field(name="providerID", default="")
    image_id: str = msgspec.field(name="imageID", default="")
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class NodeClaim(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A machine that Karpenter bought or is buying."""

    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()
    status: NodeClaimStatus = NodeClaimStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    def condition(self, type: str) -> Condition | None:  # noqa: A002 - what Kubernetes calls it
        return next((each for each in self.status.conditions if each.type == type), None)

    def says(self, type: str) -> bool:  # noqa: A002
        """Whether a condition is True."""
        for each in self.status.conditions:  # asked of every claim in every cycle
            if each.type == type:
                return each.status == "True"
        return False


class NodeClass(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How a cloud makes machines; of its status, the images that it found."""

    metadata: Metadata
    kind: str = ""
    spec: dict[str, Any] = {}
    images: tuple[str, ...] = ()
