"""Volumes at random: bound to zones or nodes, waiting for a first consumer, claimed by one pod alone, or not there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.stages.scheduling.draw.chance import HOSTNAME, NAMESPACES, RACK, RACKS, ZONE, ZONES, Chance, Manifest

DRIVER = "disks.lab.example.com"
TRACKED = "tracked.lab.example.com"  # a driver that says how much room it has left where
_NONE = "kubernetes.io/no-provisioner"
LEAVING = "lab.example.com/leaving"  # a finalizer of what is deleted and does not go
GONE = "gone"  # a volume that a claim names and that there is not
MISSING = "missing"  # a class, or a claim, that there is not
CLASSES = (
    "lab-immediate",
    "lab-local",
    "lab-local",
    "lab-waiting",
    "lab-zonal",
    "lab-zonal",
    "lab-either",
    "lab-tracked",
    MISSING,
)


def storage_classes() -> list[Manifest]:
    """The same for all fleets."""
    two_zones = [{"matchLabelExpressions": [{"key": ZONE, "values": list(ZONES[:2])}]}]
    either = [
        {"matchLabelExpressions": [{"key": ZONE, "values": [ZONES[2]]}]},
        {"matchLabelExpressions": [{"key": RACK, "values": [RACKS[0], RACKS[1]]}, {"key": ZONE, "values": [ZONES[0]]}]},
    ]
    return [
        _class("lab-immediate", _NONE, "Immediate"),
        _class("lab-local", _NONE, "WaitForFirstConsumer"),
        _class("lab-waiting", DRIVER, "WaitForFirstConsumer"),
        _class("lab-zonal", DRIVER, "WaitForFirstConsumer", allowedTopologies=two_zones),
        _class("lab-either", DRIVER, "WaitForFirstConsumer", allowedTopologies=either),
        _class("lab-tracked", TRACKED, "WaitForFirstConsumer"),
    ]


def driver() -> Manifest:
    """Of the tracked one alone: for the other there is none, which is as good."""
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": TRACKED}}
    return {**kind, "spec": {"storageCapacity": True, "attachRequired": True}}


@dataclass
class Store:
    """Volumes and claims of one fleet, and which claims a pod of a namespace can name."""

    volumes: list[Manifest] = field(default_factory=list)
    claims: list[Manifest] = field(default_factory=list)
    limits: list[Manifest] = field(default_factory=list)  # how many volumes nodes can hold, and what they hold already

    def named(self, namespace: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.claims if each["metadata"]["namespace"] == namespace]


def own_volume(chance: Chance) -> Manifest:
    """A volume of a pod for which a claim is made with it."""
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": chance.choice(CLASSES)}
    template = {"spec": {**claim, "resources": {"requests": {"storage": "1Gi"}}}}
    return {"name": "own", "ephemeral": {"volumeClaimTemplate": template}}


def draw(chance: Chance, prefix: str, nodes: Sequence[str]) -> Store:
    """A few claims in each namespace, most of them bound; and local volumes that nobody has claimed yet."""
    store = Store()
    for namespace in NAMESPACES:
        for number in range(chance.randint(2, 4)):
            name = f"{prefix}-{namespace}-{number}"
            if chance.percent(60):
                _bound(chance, store, (namespace, name), nodes)
            else:
                _unbound(chance, store, namespace, name)
    for number in range(chance.randint(0, 3)):
        spec = {"storageClassName": "lab-local", "nodeAffinity": _affinity(HOSTNAME, chance.some(nodes, 1, 2))}
        spec["capacity"] = {"storage": chance.choice(["1Gi", "5Gi"])}
        volume = _volume(f"{prefix}-local-{number}", ["ReadWriteOnce"], spec)
        volume["metadata"]["labels"] = {"disk": chance.choice(["fast", "slow"])}
        store.volumes.append(volume)
    store.limits = [_limited(chance, node) for node in nodes if chance.percent(60)]
    handles = [each["metadata"]["name"] for each in store.volumes]
    for number in range(chance.randint(0, 4)):
        store.limits.append(_attached(f"{prefix}-{number}", chance.choice(nodes), chance.choice(handles)))
    return store


def _limited(chance: Chance, node: str) -> Manifest:
    limit = {"allocatable": {"count": chance.choice([1, 1, 2])}} if chance.percent(85) else {}
    drivers = [{"name": DRIVER, "nodeID": node, "topologyKeys": [], **limit}]
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node}}
    return {**kind, "spec": {"drivers": drivers if chance.percent(90) else []}}


def _attached(name: str, node: str, volume: str) -> Manifest:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name}}
    return {**kind, "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}}}


def _bound(chance: Chance, store: Store, key: tuple[str, str], nodes: Sequence[str]) -> None:
    namespace, name = key
    modes = [chance.choice(["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteOncePod", "ReadWriteMany"])]
    labels: dict[str, str] = {}
    spec: Manifest = {"storageClassName": chance.choice(["lab-waiting", "lab-zonal", ""])}
    match chance.choice(["zone", "zone", "node", "label", "labels", "either", "anywhere"]):
        case "zone":
            spec["nodeAffinity"] = _affinity(ZONE, chance.some(ZONES, 1, 2))
        case "node":
            spec["nodeAffinity"] = _affinity(HOSTNAME, chance.some(nodes, 1, 3))
        case "label":
            labels[ZONE] = chance.choice(ZONES)
        case "labels":
            labels[ZONE] = "__".join(chance.some(ZONES, 2, 2))
        case "either":
            affinity = _affinity(RACK, chance.some(RACKS, 1, 2))
            affinity["required"]["nodeSelectorTerms"] += _affinity(ZONE, [chance.choice(ZONES)])["required"][
                "nodeSelectorTerms"
            ]
            spec["nodeAffinity"] = affinity
    spec["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace, "name": name}
    volume = _volume(name, modes, spec)
    if chance.percent(4):
        del volume["spec"]["csi"]
        volume["spec"]["awsElasticBlockStore"] = {"volumeID": f"vol-{name}"}
    volume["metadata"]["labels"] = labels
    store.volumes.append(volume)
    store.claims.append(_claim(namespace, name, modes, volumeName=name, storageClassName=spec["storageClassName"]))


def _unbound(chance: Chance, store: Store, namespace: str, name: str) -> None:
    classes = [
        "lab-immediate",
        "lab-local",
        "lab-local",
        "lab-waiting",
        "lab-zonal",
        "lab-zonal",
        "lab-either",
        MISSING,
    ]
    size = chance.choice(["1Gi", "2Gi"])
    claim = _claim(namespace, name, ["ReadWriteOnce"], storageClassName=chance.choice(classes))
    claim["spec"]["resources"]["requests"]["storage"] = size
    store.claims.append(claim)


def _class(name: str, provisioner: str, mode: str, **more: Any) -> Manifest:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**kind, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def _volume(name: str, modes: Sequence[str], spec: Mapping[str, Any]) -> Manifest:
    told = {
        "capacity": {"storage": "1Gi"},
        "accessModes": list(modes),
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": DRIVER, "volumeHandle": name},
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": told}


def _claim(namespace: str, name: str, modes: Sequence[str], **spec: Any) -> Manifest:
    told = {"accessModes": list(modes), "resources": {"requests": {"storage": "1Gi"}}, **spec}
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": told}


def _affinity(key: str, values: Sequence[str]) -> Manifest:
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
