"""Volumes and devices that pods claim: what there is, and how more of it is made."""

import msgspec

from reconciler.model.cluster.metadata import LabelSelector, Metadata
from reconciler.model.cluster.pod import Amounts, NodeSelector, Present, ResourceRequirements
from reconciler.model.parsers import Int64

STORAGE = "storage"
ONE_POD_ONLY = "ReadWriteOncePod"
FIRST_CONSUMER = "WaitForFirstConsumer"
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_FILESYSTEM = "Filesystem"


class VolumeClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What a pod wants to keep things on."""

    storage_class_name: str = ""
    volume_name: str = ""
    volume_mode: str = _FILESYSTEM
    volume_attributes_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    selector: LabelSelector | None = None


class VolumeClaimStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What came of it."""

    phase: str = ""


class PersistentVolumeClaim(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A claim for a volume."""

    metadata: Metadata
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()

    @property
    def title(self) -> str:
        return f"PersistentVolumeClaim {self.metadata.namespace}/{self.metadata.name}"

    @property
    def storage_class(self) -> str:
        """The annotation from before there was a field still counts first."""
        return self.metadata.annotations.storage_class or self.spec.storage_class_name

    @property
    def is_bound(self) -> bool:
        """Whether both sides know of each other."""
        return bool(self.spec.volume_name and self.metadata.annotations.bind_completed)


class ClaimReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The claim that a volume is kept for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeAffinity(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class CsiSource(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Who makes a volume available, and under which name."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What a volume is."""

    storage_class_name: str = ""
    volume_mode: str = _FILESYSTEM
    volume_attributes_class_name: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: Amounts = {}
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeAffinity | None = None
    csi: CsiSource | None = None
    # Kinds from before there were drivers: a driver stands in for them, and then they are elsewhere than they say.
    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    portworx_volume: Present | None = None


class PersistentVolumeStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How a volume is."""

    phase: str = ""


class PersistentVolume(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A volume."""

    metadata: Metadata
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def storage_class(self) -> str:
        return self.metadata.annotations.storage_class or self.spec.storage_class_name

    @property
    def is_stood_in_for(self) -> bool:
        """Whether a driver stands in for the kind that it says it is."""
        spec = self.spec
        return any(
            each is not None
            for each in (
                spec.aws_elastic_block_store,
                spec.azure_disk,
                spec.cinder,
                spec.gce_persistent_disk,
                spec.portworx_volume,
            )
        )


class TopologyExpression(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A label of a node, and the values that will do."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """All of it must hold; a term without anything matches nothing."""

    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How volumes are made, when, and where."""

    metadata: Metadata
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether a volume is chosen or made only once a pod that wants it has a node."""
        return self.volume_binding_mode == FIRST_CONSUMER

    @property
    def provisions(self) -> bool:
        """Whether volumes are made, and not only chosen among those that there are."""
        return self.provisioner not in {"", NO_PROVISIONER}


# --- Devices as Kubernetes itself knows them (dynamic resource allocation).


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
