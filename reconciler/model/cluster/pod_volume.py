"""A volume of a pod, and whether that ties it to a place."""

import msgspec


class ClaimSource(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A volume's claim."""

    claim_name: str = ""


class Present(msgspec.Struct, frozen=True, gc=False):
    """That it is there is all that is read of it."""


class EmptyDir(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A folder that is made for the pod and goes with it: on the disk of its node, or in memory."""

    medium: str = ""


class Volume(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A volume: what ties a pod to a place is looked at, what is in it is not."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None
    empty_dir: EmptyDir | None = None
    host_path: Present | None = None
    # Kinds from before there were drivers.
    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    iscsi: Present | None = None
    portworx_volume: Present | None = None
    rbd: Present | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is on the disk of its node; what is in memory, such as /dev/shm, is as the process' own."""
        return self.host_path is not None or (self.empty_dir is not None and self.empty_dir.medium != "Memory")

    @property
    def is_inline(self) -> bool:
        """Whether it is a disk that the pod names itself, and that no other pod may have at the same time."""
        return (
            self.aws_elastic_block_store is not None
            or self.azure_disk is not None
            or self.cinder is not None
            or self.gce_persistent_disk is not None
            or self.iscsi is not None
            or self.portworx_volume is not None
            or self.rbd is not None
        )

    @property
    def ties(self) -> bool:
        """Whether it ties a pod to a place; a ConfigMap, a Secret or a token does not."""
        return (
            self.empty_dir is not None
            or self.persistent_volume_claim is not None
            or self.host_path is not None
            or self.ephemeral is not None
            or self.is_inline
        )
