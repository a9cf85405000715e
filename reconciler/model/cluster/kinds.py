"""The kinds of object that are looked at: how the API server calls each, and where it stands in an Observed."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.attachments import CsiDriver, CsiNode, VolumeAttachment
from reconciler.model.cluster.devices import ResourceClaim, ResourceSlice
from reconciler.model.cluster.karpenter import NodeClaim, NodeClass
from reconciler.model.cluster.lease import Lease
from reconciler.model.cluster.namespace import Namespace
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from reconciler.model.cluster.whole import Whole
from reconciler.model.cluster.workload import PodDisruptionBudget, Workload


class Seen(msgspec.Struct, frozen=True):
    """A kind that is looked at."""

    kind: str
    group: str
    plural: str
    field: str  # of Observed
    type: type[Any]
    namespaced: bool = True
    optional: bool = False  # not every cluster serves it: that it is not served is an answer
    selector: str = ""  # only objects with this label
    own_namespace: bool = False  # only those in the namespace of the reconciler
    namespace: str = ""  # only those in this one
    version: str = ""  # a fixed version; else the one that the server prefers

    @property
    def resource(self) -> str:
        """poddisruptionbudgets.policy, as rights and kubectl name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def title(self) -> str:
        """How a person is told of it."""
        if self.own_namespace:
            return f"{self.resource} of the controller"
        return f"{self.resource} labelled {self.selector}" if self.selector else self.resource

    def namespace_for(self, own: str) -> str:
        """The one namespace that is looked at, where the reconciler is in `own`; nothing: all of them."""
        return own if self.own_namespace else self.namespace


def _ours(kind: str, plural: str, namespaced: bool = False) -> Seen:
    return Seen(kind, "gpu.scheduling", plural, "policies", Whole, namespaced, optional=True, version="v1")


_STORAGE = "storage.k8s.io"
_KEPT = f"{names.MANAGED}=true"

SEEN: tuple[Seen, ...] = (
    Seen("Node", "", "nodes", "nodes", Node, namespaced=False),
    Seen("Pod", "", "pods", "pods", Pod),
    Seen("PodDisruptionBudget", "policy", "poddisruptionbudgets", "budgets", PodDisruptionBudget),
    Seen("ReplicaSet", "apps", "replicasets", "workloads", Workload),
    Seen("StatefulSet", "apps", "statefulsets", "workloads", Workload),
    Seen("DaemonSet", "apps", "daemonsets", "workloads", Workload),
    Seen("Deployment", "apps", "deployments", "workloads", Workload),
    Seen("Job", "batch", "jobs", "workloads", Workload),
    Seen("ReplicationController", "", "replicationcontrollers", "workloads", Workload),
    Seen("NodePool", "karpenter.sh", "nodepools", "node_pools", Whole, namespaced=False, optional=True, version="v1"),
    Seen(
        "NodeClaim",
        "karpenter.sh",
        "nodeclaims",
        "node_claims",
        NodeClaim,
        namespaced=False,
        optional=True,
        version="v1",
    ),
    Seen("EC2NodeClass", "karpenter.k8s.aws", "ec2nodeclasses", "node_classes", NodeClass, False, optional=True),
    Seen("KWOKNodeClass", "karpenter.kwok.sh", "kwoknodeclasses", "node_classes", NodeClass, False, optional=True),
    Seen("ResourceClaim", "resource.k8s.io", "resourceclaims", "resource_claims", ResourceClaim, optional=True),
    Seen("ResourceSlice", "resource.k8s.io", "resourceslices", "resource_slices", ResourceSlice, False, optional=True),
    Seen("PersistentVolumeClaim", "", "persistentvolumeclaims", "volume_claims", PersistentVolumeClaim),
    Seen("PersistentVolume", "", "persistentvolumes", "volumes", PersistentVolume, namespaced=False),
    Seen("StorageClass", _STORAGE, "storageclasses", "storage_classes", StorageClass, namespaced=False),
    Seen("CSINode", _STORAGE, "csinodes", "csi_nodes", CsiNode, namespaced=False),
    Seen("CSIDriver", _STORAGE, "csidrivers", "csi_drivers", CsiDriver, namespaced=False),
    Seen("VolumeAttachment", _STORAGE, "volumeattachments", "attachments", VolumeAttachment, namespaced=False),
    Seen("Namespace", "", "namespaces", "namespaces", Namespace, namespaced=False),
    _ours("GpuPool", "gpupools"),
    _ours("NodeProvisioner", "nodeprovisioners"),
    _ours("DrainPolicy", "drainpolicies"),
    _ours("PressurePolicy", "pressurepolicies"),
    _ours("ChangeGuard", "changeguards"),
    _ours("ChangeApproval", "changeapprovals"),
    _ours("GpuNodeStatus", "gpunodestatuses"),
    _ours("GpuClaim", "gpuclaims", namespaced=True),
    # Node heartbeats are Leases too, 500 a second at 5,000 nodes: so Leases are looked at in our namespaces only.
    Seen("Lease", "coordination.k8s.io", "leases", "leases", Lease, namespace=names.LEASES_NAMESPACE),
    Seen("Lease", "coordination.k8s.io", "leases", "leases", Lease, own_namespace=True),
    # What templates may yield besides NodePools, where we made it: kept whole, to be compared.
    Seen("PodDisruptionBudget", "policy", "poddisruptionbudgets", "kept", Whole, selector=_KEPT),
    Seen("Pod", "", "pods", "kept", Whole, selector=_KEPT),
    Seen("PriorityClass", "scheduling.k8s.io", "priorityclasses", "kept", Whole, namespaced=False, selector=_KEPT),
)
