"""Nodes and their attached volumes, NodeClaims, and node classes."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, Metadata
from reconciler.model.parsers import Int32, Int64
from reconciler.model.quantity import whole_number

_UPGRADE_DONE = "upgrade-done"


class NodeTaint(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    key: str
    effect: str
    value: str = ""
    time_added: str = ""


class NodeSpec(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    unschedulable: bool = False
    taints: tuple[NodeTaint, ...] = ()
    provider_id: str = msgspec.field(name="providerID", default="")


class NodeStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def pool(self) -> str:
        """The node's pool; empty for a node of no pool."""
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
        """Allocatable GPUs."""
        return whole_number(self.status.allocatable.get(names.NVIDIA_GPU, "0"))

    @property
    def is_ready(self) -> bool:
        for each in self.status.conditions:  # a loop, not a generator, for speed: this is a hot path
            if each.type == "Ready":
                return each.status == "True"
        return False

    @property
    def driver_upgrade(self) -> str:
        """The state of a GPU driver upgrade in progress; otherwise empty."""
        state = self.metadata.labels.get(names.UPGRADE_STATE, "")
        return "" if state == _UPGRADE_DONE else state

    @property
    def is_being_removed(self) -> bool:
        """Whether any component, including reconciler, is removing the node."""
        return self.metadata.leaving or any(each.key in names.TAKING for each in self.spec.taints)

    def taint(self, key: str) -> NodeTaint | None:
        for each in self.spec.taints:  # a loop for speed, as above
            if each.key == key:
                return each
        return None


# --- Volume limits of nodes: CSI drivers, their limits, and attached volumes.


class DriverAllocatable(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A driver's volume limit on a node; empty if unlimited."""

    count: Int32 | None = None


class NodeDriver(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    name: str = ""
    allocatable: DriverAllocatable = DriverAllocatable()


class NodeDrivers(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    drivers: tuple[NodeDriver, ...] = ()


class CsiNode(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The driver information of a node; has the node's name."""

    metadata: Metadata
    spec: NodeDrivers = NodeDrivers()


class DriverSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    storage_capacity: bool = False


class CsiDriver(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A CSI driver, with the name that storage classes use."""

    metadata: Metadata
    spec: DriverSpec = DriverSpec()


class AttachmentSource(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    persistent_volume_name: str = ""


class AttachmentSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A volume that is attached to a node, or is being attached or detached."""

    metadata: Metadata
    spec: AttachmentSpec = AttachmentSpec()


# --- Karpenter's objects: NodeClaims and node classes.


class NodeClaimRequirement(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A requirement on a node label; only the label's key is used."""

    key: str = ""


EXPIRES_AFTER = "720h"  # of NodePools and NodeClaims: default of the API server, which fills in an absent value


class ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    expire_after: str = EXPIRES_AFTER
    termination_grace_period: str = ""
    requirements: tuple[NodeClaimRequirement, ...] = ()


class NodeClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    node_name: str = ""
    provider_id: str = msgspec.field(name="providerID", default="")
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class NodeClaim(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A machine that Karpenter launched or is launching."""

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
        for each in self.status.conditions:  # hot path: evaluated for every NodeClaim in every cycle
            if each.type == type:
                return each.status == "True"
        return False


class NodeClass(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A cloud's node configuration; of its status, the resolved images."""

    metadata: Metadata
    kind: str = ""
    spec: dict[str, Any] = {}
    images: tuple[str, ...] = ()


# --- The spec of a NodePool, which is otherwise kept unstructured; a spec with another schema is set aside. None means
# absent, which differs from empty.


class TemplateMetadata(msgspec.Struct, frozen=True, gc=False):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class TemplateTaint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: str | None = None


class TemplateClass(msgspec.Struct, frozen=True, gc=False):
    kind: str = ""
    name: str = ""
    group: str = ""


class NodePoolRequirement(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: Int64 | None = None  # restricts launches, never existing nodes


class TemplateSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    taints: tuple[TemplateTaint, ...] | None = None
    startup_taints: tuple[TemplateTaint, ...] | None = None
    requirements: tuple[NodePoolRequirement, ...] | None = None
    node_class_ref: TemplateClass | None = None
    termination_grace_period: str | None = None
    expire_after: str | None = EXPIRES_AFTER


class NodeClaimTemplate(msgspec.Struct, frozen=True, gc=False):
    metadata: TemplateMetadata = TemplateMetadata()
    spec: TemplateSpec = TemplateSpec()


class NodePoolBudget(msgspec.Struct, frozen=True, gc=False):
    nodes: str | Int64 | None = None
    schedule: str | None = None
    duration: str | None = None
    reasons: tuple[str, ...] | None = None


class NodePoolDisruption(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    budgets: tuple[NodePoolBudget, ...] | None = None
    consolidate_after: str | None = None
    consolidation_policy: str | None = None


class NodePoolSpec(msgspec.Struct, frozen=True, gc=False):
    """The fields that are read of a NodePool's spec."""

    template: NodeClaimTemplate | None = None
    disruption: NodePoolDisruption | None = None
    limits: dict[str, str | int | float] | None = None
    weight: Int64 | None = None
    replicas: Int64 | None = None
