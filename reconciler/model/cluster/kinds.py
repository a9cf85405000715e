"""The watched kinds: their names in the API and their fields in Observed."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Lease, Namespace
from reconciler.model.cluster.node import CsiDriver, CsiNode, Node, NodeClaim, NodeClass, VolumeAttachment
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.cluster.volumes import (
    DeviceClass,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    ResourceSlice,
    StorageClass,
)
from reconciler.model.cluster.workload import PodDisruptionBudget, Workload


class ResourceKind(msgspec.Struct, frozen=True):
    """A watched kind."""

    kind: str
    group: str
    plural: str
    field: str  # attribute of Observed
    type: type[Any]
    namespaced: bool = True
    optional: bool = False  # not every cluster serves this kind; a missing API is not an error
    selector: str = ""  # only objects with this label
    own_namespace: bool = False  # only objects in the namespace of the reconciler
    namespace: str = ""  # only objects in this namespace
    version: str = ""  # a fixed version; otherwise the server's preferred version

    @property
    def resource(self) -> str:
        """poddisruptionbudgets.policy, the form in rights and kubectl."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def title(self) -> str:
        """The name shown to users."""
        if self.own_namespace:
            return f"{self.resource} of the controller"
        return f"{self.resource} labelled {self.selector}" if self.selector else self.resource

    def namespace_for(self, own: str) -> str:
        """The watched namespace, given the reconciler's namespace `own`; empty for all namespaces."""
        return own if self.own_namespace else self.namespace


def _ours(kind: str, plural: str, namespaced: bool = False) -> ResourceKind:
    return ResourceKind(
        kind, "gpu.scheduling", plural, "policies", Unstructured, namespaced, optional=True, version="v1"
    )


def _karpenter(kind: str, plural: str, field: str, type_: type[Any]) -> ResourceKind:
    return ResourceKind(kind, "karpenter.sh", plural, field, type_, namespaced=False, optional=True, version="v1")


_STORAGE = "storage.k8s.io"
_KEPT = f"{names.MANAGED}=true"

RESOURCE_KINDS: tuple[ResourceKind, ...] = (
    ResourceKind("Node", "", "nodes", "nodes", Node, namespaced=False),
    ResourceKind("Pod", "", "pods", "pods", Pod),
    ResourceKind("PodDisruptionBudget", "policy", "poddisruptionbudgets", "budgets", PodDisruptionBudget),
    ResourceKind("ReplicaSet", "apps", "replicasets", "workloads", Workload),
    ResourceKind("StatefulSet", "apps", "statefulsets", "workloads", Workload),
    ResourceKind("DaemonSet", "apps", "daemonsets", "workloads", Workload),
    ResourceKind("Deployment", "apps", "deployments", "workloads", Workload),
    ResourceKind("Job", "batch", "jobs", "workloads", Workload),
    ResourceKind("ReplicationController", "", "replicationcontrollers", "workloads", Workload),
    _karpenter("NodePool", "nodepools", "node_pools", Unstructured),
    _karpenter("NodeClaim", "nodeclaims", "node_claims", NodeClaim),
    ResourceKind(
        "EC2NodeClass", "karpenter.k8s.aws", "ec2nodeclasses", "node_classes", NodeClass, False, optional=True
    ),
    ResourceKind(
        "KWOKNodeClass", "karpenter.kwok.sh", "kwoknodeclasses", "node_classes", NodeClass, False, optional=True
    ),
    ResourceKind("ResourceClaim", "resource.k8s.io", "resourceclaims", "resource_claims", ResourceClaim, optional=True),
    ResourceKind(
        "ResourceSlice", "resource.k8s.io", "resourceslices", "resource_slices", ResourceSlice, False, optional=True
    ),
    ResourceKind(
        "DeviceClass", "resource.k8s.io", "deviceclasses", "device_classes", DeviceClass, False, optional=True
    ),
    ResourceKind("PersistentVolumeClaim", "", "persistentvolumeclaims", "volume_claims", PersistentVolumeClaim),
    ResourceKind("PersistentVolume", "", "persistentvolumes", "volumes", PersistentVolume, namespaced=False),
    ResourceKind("StorageClass", _STORAGE, "storageclasses", "storage_classes", StorageClass, namespaced=False),
    ResourceKind("CSINode", _STORAGE, "csinodes", "csi_nodes", CsiNode, namespaced=False),
    ResourceKind("CSIDriver", _STORAGE, "csidrivers", "csi_drivers", CsiDriver, namespaced=False),
    ResourceKind("VolumeAttachment", _STORAGE, "volumeattachments", "attachments", VolumeAttachment, namespaced=False),
    ResourceKind("Namespace", "", "namespaces", "namespaces", Namespace, namespaced=False),
    _ours("GpuPool", "gpupools"),
    _ours("NodeProvisioner", "nodeprovisioners"),
    _ours("DrainPolicy", "drainpolicies"),
    _ours("PressurePolicy", "pressurepolicies"),
    _ours("ChangeGuard", "changeguards"),
    _ours("ChangeApproval", "changeapprovals"),
    _ours("GpuNodeStatus", "gpunodestatuses"),
    _ours("GpuClaim", "gpuclaims", namespaced=True),
    # Node heartbeats are Leases too, 500 a second at 5,000 nodes, so Leases are only watched in reconciler's
    # namespaces.
    ResourceKind("Lease", "coordination.k8s.io", "leases", "leases", Lease, namespace=names.LEASES_NAMESPACE),
    ResourceKind("Lease", "coordination.k8s.io", "leases", "leases", Lease, own_namespace=True),
    # Kinds besides NodePools that templates may render. Objects created by reconciler are kept whole for comparison.
    ResourceKind("PodDisruptionBudget", "policy", "poddisruptionbudgets", "kept", Unstructured, selector=_KEPT),
    ResourceKind("Pod", "", "pods", "kept", Unstructured, selector=_KEPT),
    ResourceKind(
        "PriorityClass", "scheduling.k8s.io", "priorityclasses", "kept", Unstructured, namespaced=False, selector=_KEPT
    ),
)
