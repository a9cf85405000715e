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


def _made(kind: str, version: str, name: str = "a", namespace: str = "", **more: Any) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}
