"""Small clusters with volumes, device claims and nominations, from what a table of cases says of them."""

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.words import obstacle_words
from tests import folders

Case = Mapping[str, Any]
Object = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODES: Mapping[str, Object] = {"a1": {ZONE: "a"}, "a2": {ZONE: "a"}, "b1": {ZONE: "b"}}
DRIVER = "disks.example.com"
LOCAL: Case = {"classes": {"local": {"provisioner": "kubernetes.io/no-provisioner"}, "disks": {}}}
ROOM = {"cpu": "8", "memory": "32Gi", "pods": "10"}


def table(name: str) -> dict[str, Case]:
    found: dict[str, Case] = yaml.safe_load((folders.CASES / "fleet" / name).read_text())
    return found


def observed_of(case: Case) -> Observed:
    named = {key: case.get(key, {}) for key in ("claims", "volumes", "classes", "limits", "attached", "devices")}
    attached = [(node, volume) for node, volumes in named["attached"].items() for volume in volumes]
    pods = [_pod(f"there-{number}", each) for number, each in enumerate(case.get("pods", ()))]
    found = {
        "nodes": [_node(name, labels or {}) for name, labels in (NODES | case.get("nodes", {})).items()],
        "pods": pods,
        "volume_claims": [_claim(name, each or {}) for name, each in named["claims"].items()],
        "volumes": [_volume(name, each or {}) for name, each in named["volumes"].items()],
        "storage_classes": [_class(name, each or {}) for name, each in named["classes"].items()],
        "csi_nodes": [_limits(name, limit) for name, limit in named["limits"].items()],
        "csi_drivers": [
            {"metadata": {"name": each}, "spec": {"storageCapacity": True}} for each in case.get("counting room", ())
        ],
        "attachments": [_attachment(node, volume) for node, volume in attached],
        "resource_claims": [_device(name, each or {}) for name, each in named["devices"].items()],
        "unread": [{"kind": kind, "why": "forbidden"} for kind in case.get("unread", ())],
    }
    return msgspec.convert(found, Observed)


def pod_of(case: Case) -> Pod:
    return msgspec.convert(_pod("asked", case["pod"]), Pod)


def where(fleet: Snapshot, pod: Pod, predicates: tuple[type[Predicate], ...]) -> dict[str, str]:
    """Why not, by node; nothing where it fits. Mask, scalar and `concerns` must not contradict one another."""
    pod_class = fleet.classes.of(pod).anew
    found: dict[str, str] = {}
    for each in map(fleet.part, predicates):
        mask = each.mask(pod_class, fleet)
        for name, row in sorted(fleet.rows.row_of.items()):
            if not fleet.rows.alive[row]:
                continue
            fits = each.fits(pod_class, row, fleet)
            assert fits == (mask is None or bool(mask[row])), (each.name, name)
            assert fits or each.concerns(pod_class, fleet), (each.name, name)
            found[name] = found.get(name) or ("" if fits else obstacle_words(each.why(pod_class, row, fleet)))
            assert fits or found[name]
    return found


def take_off(fleet: Snapshot, node: str) -> None:
    row = fleet.rows.row_of[node]
    for pod_class in list(fleet.booked_on(row)):
        fleet.remove(pod_class, row)


def _node(name: str, labels: Object) -> Object:
    return {"metadata": {"name": name, "labels": {HOST: name, **labels}}, "status": {"allocatable": ROOM}}


def _pod(name: str, told: Case) -> Object:
    name = told.get("name", name)
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in told.get("claims", ())]
    volumes += [{"name": each, "ephemeral": {}} for each in told.get("ephemeral", ())]
    volumes += [{"name": each, each: {}} for each in told.get("inline", ())]
    requests = {"cpu": str(told.get("cpu", 0))}
    ports = [{"hostPort": each} for each in told.get("ports", ())]
    spec = {
        "nodeName": told.get("at", ""),
        "priority": told.get("priority", 0),
        "volumes": volumes,
        "containers": [{"name": "main", "resources": {"requests": requests}, "ports": ports}],
        "resourceClaims": [
            {"name": key, "resourceClaimName": each} if each else {"name": key, "resourceClaimTemplateName": "t"}
            for key, each in told.get("devices", {}).items()
        ],
        "schedulingGates": [{"name": each} for each in told.get("gates", ())],
    }
    if "apart" in told:
        term = {"topologyKey": told["apart"], "labelSelector": {"matchLabels": told.get("labels", {})}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made = [{"name": key, "resourceClaimName": each} for key, each in told.get("made", {}).items()]
    status = {"nominatedNodeName": told.get("nominated", ""), "resourceClaimStatuses": made}
    if "phase" in told:
        status["phase"] = told["phase"]
    metadata = {"name": name, "namespace": told.get("namespace", "default"), "uid": f"uid-{name}"}
    return {"metadata": metadata | {"labels": told.get("labels", {})}, "spec": spec, "status": status}


def _claim(name: str, told: Case) -> Object:
    namespace, _, short = name.rpartition("/")
    annotations = {
        "volume.kubernetes.io/selected-node": told.get("selected", ""),
        "volume.beta.kubernetes.io/storage-class": told.get("annotated", ""),
    }
    if "volume" in told and told.get("bound", True):
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
    metadata: Object = {"name": short, "namespace": namespace or "default", "uid": f"uid-{short}"}
    if "of" in told:
        metadata["ownerReferences"] = [
            {"kind": "Pod", "name": told["of"], "uid": f"uid-{told['of']}", "controller": True}
        ]
    if told.get("leaving"):
        metadata["deletionTimestamp"] = "2026-11-02T08:00:00Z"
    spec = {
        "storageClassName": told.get("class", ""),
        "volumeName": told.get("volume", ""),
        "accessModes": told.get("modes", ["ReadWriteOnce"]),
        "resources": {"requests": {"storage": told.get("size", "1Gi")}},
        **told.get("spec", {}),
    }
    return {
        "metadata": metadata | {"annotations": annotations},
        "spec": spec,
        "status": {"phase": told.get("phase", "")},
    }


def _volume(name: str, told: Case) -> Object:
    metadata: Object = {"name": name, "labels": told.get("labels", {})}
    if told.get("leaving"):
        metadata["deletionTimestamp"] = "2026-11-02T08:00:00Z"
    spec: Object = {
        "storageClassName": told.get("class", ""),
        "accessModes": told.get("modes", ["ReadWriteOnce"]),
        "capacity": {"storage": told.get("size", "1Gi")},
        "csi": {"driver": DRIVER, "volumeHandle": name},
        **told.get("spec", {}),
    }
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
        for key, values in ((ZONE, told.get("zones")), (HOST, told.get("hosts")))
        if values
    ]
    terms += told.get("terms", ())
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if "for" in told:
        spec["claimRef"] = {"namespace": "default", "name": told["for"], "uid": told.get("uid", "")}
    return {"metadata": metadata, "spec": spec, "status": {"phase": told.get("phase", "Available")}}


def _class(name: str, told: Case) -> Object:
    mode = "WaitForFirstConsumer" if told.get("waits", True) else "Immediate"
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]} for zones in told.get("zones", ())]
    provisioner = told.get("provisioner", DRIVER)
    found = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    return found | {"allowedTopologies": terms + told.get("terms", [])}


def _limits(node: str, limit: int) -> Object:
    return {"metadata": {"name": node}, "spec": {"drivers": [{"name": DRIVER, "allocatable": {"count": limit}}]}}


def _attachment(node: str, volume: str) -> Object:
    source = {"persistentVolumeName": volume}
    spec = {"attacher": DRIVER, "nodeName": node, "source": source}
    return {"metadata": {"name": f"{node}-{volume}"}, "spec": spec}


def _device(name: str, told: Case) -> Object:
    metadata: Object = {"name": name, "namespace": "default"}
    if "of" in told:
        metadata["ownerReferences"] = [
            {"kind": "Pod", "name": told["of"], "uid": f"uid-{told['of']}", "controller": True}
        ]
    if told.get("leaving"):
        metadata["deletionTimestamp"] = "2026-11-02T08:00:00Z"
    if "met" not in told:
        return {"metadata": metadata}
    device = {"driver": DRIVER, "pool": "p", "device": "d", "bindingConditions": told.get("conditions", [])}
    allocation: Object = {"devices": {"results": [device]}}
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [each]}]} for each in told["met"]]
    labels = [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [each]}]} for each in told.get("zones", ())
    ]
    if fields or labels:
        allocation["nodeSelector"] = {"nodeSelectorTerms": fields + labels}
    return {"metadata": metadata, "status": {"allocation": allocation}}
