"""Volumes and devices that pods claim: existing ones, and how they are provisioned."""

import msgspec

from reconciler.model.cluster.metadata import LabelSelector, Metadata
from reconciler.model.cluster.pod import Amounts, NodeSelector, Present, ResourceRequirements

STORAGE = "storage"
ONE_POD_ONLY = "ReadWriteOncePod"
FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_FILESYSTEM = "Filesystem"


class VolumeClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    storage_class_name: str = ""
    volume_name: str = ""
    volume_mode: str = _FILESYSTEM
    volume_attributes_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    selector: LabelSelector | None = None


class VolumeClaimStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    phase: str = ""


class PersistentVolumeClaim(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    metadata: Metadata
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()

    @property
    def title(self) -> str:
        return f"PersistentVolumeClaim {self.metadata.namespace}/{self.metadata.name}"

    @property
    def storage_class(self) -> str:
        """The storage class; the annotation that predates the field still takes precedence."""
        return self.metadata.annotations.storage_class or self.spec.storage_class_name

    @property
    def is_bound(self) -> bool:
        """Whether claim and volume refer to each other."""
        return bool(self.spec.volume_name and self.metadata.annotations.bind_completed)


class ClaimReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The claim that a volume is bound to."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeAffinity(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The nodes that can access a volume."""

    required: NodeSelector | None = None


class CsiSource(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    storage_class_name: str = ""
    volume_mode: str = _FILESYSTEM
    volume_attributes_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: Amounts = {}
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeAffinity | None = None
    csi: CsiSource | None = None
    # In-tree volume types that a CSI driver replaces; such volumes are elsewhere than their spec says.
    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    portworx_volume: Present | None = None


class PersistentVolumeStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    phase: str = ""


class PersistentVolume(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    metadata: Metadata
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def storage_class(self) -> str:
        return self.metadata.annotations.storage_class or self.spec.storage_class_name

    @property
    def is_stood_in_for(self) -> bool:
        """Whether a CSI driver replaces the volume's in-tree type."""
        spec = self.spec
        of_clouds = spec.aws_elastic_block_store or spec.azure_disk or spec.gce_persistent_disk
        return (of_clouds or spec.cinder or spec.portworx_volume) is not None


class TopologyExpression(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """All requirements must hold; an empty term matches nothing."""

    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How, when and where volumes are provisioned."""

    metadata: Metadata
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether a volume is bound only once a node is chosen for a pod (WaitForFirstConsumer)."""
        return self.volume_binding_mode == FIRST_CONSUMER

    @property
    def provisions(self) -> bool:
        """Whether volumes are provisioned dynamically."""
        return self.provisioner not in {"", NO_PROVISIONER}


# --- Devices of Kubernetes' dynamic resource allocation (DRA).


class AllocatedDevice(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    binding_conditions: tuple[str, ...] = ()


class Allocated(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    results: tuple[AllocatedDevice, ...] = ()


class Allocation(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The allocation of a claim, and its nodes; any node if none is named."""

    devices: Allocated = Allocated()
    node_selector: NodeSelector | None = None


class ResourceClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    allocation: Allocation | None = None


class ResourceClaim(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    metadata: Metadata
    status: ResourceClaimStatus = ResourceClaimStatus()


class DeviceClassSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The extended resource whose requests are served from devices of the class."""

    extended_resource_name: str = ""


class DeviceClass(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A class of devices that claims request."""

    metadata: Metadata
    spec: DeviceClassSpec = DeviceClassSpec()


class ResourceSlice(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Available devices; only its name is read."""

    metadata: Metadata
