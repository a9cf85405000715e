"""Observed: the cluster as last seen, always a little old; immutable, and honest about what could not be read."""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.attachments import CsiDriver, CsiNode, VolumeAttachment
from reconciler.model.cluster.devices import ResourceClaim, ResourceSlice
from reconciler.model.cluster.karpenter import NodeClaim, NodeClass
from reconciler.model.cluster.lease import Lease
from reconciler.model.cluster.namespace import Namespace
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.set_aside import SetAside
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.cluster.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.model.cluster.workload import PodDisruptionBudget, Workload
from reconciler.model.instant import Instant

# A watch that stands is told something of each kind once a minute, if only that nothing has changed.
QUIET_MS = 90_000


class Unread(msgspec.Struct, frozen=True, gc=False, order=True):
    """A kind that could not be read: none seen of it does not mean that there is none."""

    kind: str  # the title of a Seen: nodepools.karpenter.sh
    why: str


class Quiet(msgspec.Struct, frozen=True, gc=False, order=True):
    """A kind of which nothing has been heard for a while: what is seen of it counts, and may have changed."""

    kind: str  # the title of a Seen
    since: Instant


class Observed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Objects by kind, in no particular order: whoever's outcome could show the order sorts what it walks."""

    cluster_uid: str = ""  # uid of the namespace kube-system
    own_namespace: str = names.OWN_NAMESPACE  # where the controller's Lease is, and the freeze of everything
    seen_at: Instant = Instant(0)  # of the kind that was seen longest ago
    unread: tuple[Unread, ...] = ()
    quiet: tuple[Quiet, ...] = ()
    absent: tuple[str, ...] = ()  # titles of kinds that the cluster does not serve: of these there are none
    set_aside: tuple[SetAside, ...] = ()  # objects that cannot be understood; below are what stands in their place
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    workloads: tuple[Workload, ...] = ()
    node_pools: tuple[Unstructured, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CsiNode, ...] = ()
    csi_drivers: tuple[CsiDriver, ...] = ()
    attachments: tuple[VolumeAttachment, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    policies: tuple[Unstructured, ...] = ()
    leases: tuple[Lease, ...] = ()
    kept: tuple[Unstructured, ...] = ()

    def unread_among(self, *titles: str) -> Unread | None:
        """The first of the kinds that could not be read; None when all could."""
        return next((each for each in self.unread if each.kind in titles), None)

    def why_unread(self, *titles: str) -> str:
        """Why one of the kinds could not be read; nothing when all could."""
        unread = self.unread_among(*titles)
        return f"{unread.kind}: {unread.why}" if unread is not None else ""

    def quiet_among(self, *titles: str) -> Quiet | None:
        """The first of the kinds of which what is seen is old; None when none of them is."""
        return next((each for each in self.quiet if each.kind in titles), None)
