"""What Karpenter keeps: NodeClaims, and the classes of their machines."""

from typing import Any

import msgspec

from reconciler.model.cluster.metadata import Condition, Metadata


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
