"""Volumes on the lab, which has no kubelet and no driver: an object of each kind that says where a volume can be."""

from typing import Any

from tests.lab.api import Manifest

DRIVER = "a.example.com"


def one_of_each() -> list[Manifest]:
    """All named a, but the driver, and what the driver says of the node gpu-0."""
    size = {"storage": "1Gi"}
    modes = ["ReadWriteOnce"]
    csi = {"driver": DRIVER, "volumeHandle": "a"}
    return [
        _made("StorageClass", "storage.k8s.io/v1", provisioner=DRIVER, volumeBindingMode="WaitForFirstConsumer"),
        _made("CSIDriver", "storage.k8s.io/v1", DRIVER, spec={}),
        _made("CSINode", "storage.k8s.io/v1", "gpu-0", spec={"drivers": [{"name": DRIVER, "nodeID": "gpu-0"}]}),
        _made("PersistentVolume", "v1", spec={"accessModes": modes, "capacity": size, "csi": csi}),
        _made(
            "PersistentVolumeClaim",
            "v1",
            namespace="default",
            spec={"accessModes": modes, "resources": {"requests": size}, "storageClassName": "a"},
        ),
        _made(
            "VolumeAttachment",
            "storage.k8s.io/v1",
            spec={"attacher": DRIVER, "nodeName": "gpu-0", "source": {"persistentVolumeName": "a"}},
        ),
    ]


def waiting_for_a_pod(node: str) -> list[Manifest]:
    """A claim for a volume, named disk, that kube-scheduler binds for the first pod; the only volume is on the node."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    local = {
        "accessModes": modes,
        "capacity": size,
        "storageClassName": "disk",
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
    }
    unmade, late = "kubernetes.io/no-provisioner", "WaitForFirstConsumer"
    wanted = {"accessModes": modes, "resources": {"requests": size}, "storageClassName": "disk"}
    return [
        _made("StorageClass", "storage.k8s.io/v1", "disk", provisioner=unmade, volumeBindingMode=late),
        _made("PersistentVolume", "v1", "disk", spec=local),
        _made("PersistentVolumeClaim", "v1", "disk", namespace="default", spec=wanted),
    ]


def _made(kind: str, version: str, name: str = "a", namespace: str = "", **more: Any) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}
