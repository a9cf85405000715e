"""Volumes and what belongs to them as API servers print them, with much that nobody here looks at."""

from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
ZONE = "topology.ebs.csi.aws.com/zone"
DRIVER = "ebs.csi.aws.com"
STORAGE = "storage.k8s.io/v1"

CLAIM: Object = {
    "accessModes": ["ReadWriteOnce"],
    "dataSource": {"kind": "VolumeSnapshot", "name": "before"},
    "resources": {"requests": {"storage": "100Gi"}},
    "storageClassName": "gp3",
    "volumeMode": "Filesystem",
    "volumeName": "pvc-1",
}
VOLUME: Object = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "100Gi"},
    "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "team-a", "name": "data", "uid": "1"},
    "nodeAffinity": {
        "required": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["eu-1a"]}]}]
        }
    },
    "persistentVolumeReclaimPolicy": "Delete",
    "storageClassName": "gp3",
}
DRIVERS = [
    {"name": DRIVER, "nodeID": "i-1", "topologyKeys": [ZONE], "allocatable": {"count": 25}},
    {"name": "efs.csi.aws.com", "nodeID": "i-1", "topologyKeys": None},
]
ATTACHMENT = {"attacher": DRIVER, "nodeName": "gpu-1", "source": {"persistentVolumeName": "pvc-1"}}
ATTACHED = {"attached": True, "attachmentMetadata": {"devicePath": "/dev/xvdaa"}}
IN_TWO_ZONES = [{"matchLabelExpressions": [{"key": ZONE, "values": ["eu-1a", "eu-1b"]}]}]


def objects(metadata: Callable[..., Object], secret: str) -> tuple[Object, ...]:
    """One of each kind."""

    def made(kind: str, about: Object, version: str = STORAGE, **more: Any) -> Object:
        return {"apiVersion": version, "kind": kind, "metadata": about, **more}

    claim = metadata("data", "team-a")
    claim["annotations"] |= {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "gpu-1"}
    volume = metadata("pvc-1", labels={"topology.kubernetes.io/zone": "eu-1a"})
    namespace = metadata("team-a", labels={"kubernetes.io/metadata.name": "team-a"})
    csi = {"driver": DRIVER, "volumeHandle": "vol-1", "volumeAttributes": {"password": secret}}
    return (
        made("PersistentVolumeClaim", claim, "v1", spec=CLAIM, status={"phase": "Bound"}),
        made("PersistentVolume", volume, "v1", spec={**VOLUME, "csi": csi}, status={"phase": "Bound"}),
        made(
            "StorageClass",
            metadata("gp3"),
            provisioner=DRIVER,
            parameters={"type": "gp3", "password": secret},
            volumeBindingMode="WaitForFirstConsumer",
            allowedTopologies=IN_TWO_ZONES,
        ),
        made("CSINode", metadata("gpu-1"), spec={"drivers": DRIVERS}),
        made("CSIDriver", metadata(DRIVER), spec={"attachRequired": True, "storageCapacity": False}),
        made("VolumeAttachment", metadata("csi-1"), spec=ATTACHMENT, status=ATTACHED),
        made("Namespace", namespace, "v1", spec={"finalizers": ["kubernetes"]}, status={"phase": "Active"}),
    )
