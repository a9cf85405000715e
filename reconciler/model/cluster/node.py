"""A Node."""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, Metadata
from reconciler.model.resource_quantity import whole_number

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
