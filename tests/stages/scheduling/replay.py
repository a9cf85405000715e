"""A case of tests/cases/fleet/agreed.yaml as a fleet to be loaded again, and judged by the scheduler of today."""

import copy
from collections.abc import Iterator
from typing import Any

from tests.lab.api import Manifest
from tests.stages.scheduling.draw import amounts, claims, nodes
from tests.stages.scheduling.draw.chance import PRIORITIES, SCHEDULER
from tests.stages.scheduling.draw.fleet import DrawnFleet, Resident

Case = dict[str, Any]

_VERSIONS = {
    "Node": "v1",
    "Pod": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "CSINode": "storage.k8s.io/v1",
    "VolumeAttachment": "storage.k8s.io/v1",
    "ResourceClaim": "resource.k8s.io/v1",
}
_NOT_ASKED_FOR = ("uid", "annotations", "deletionTimestamp")


def as_fleet(case: Case, seed: int) -> DrawnFleet:
    """The fleet of a case; its nodes and pods keep their names, the scheduler's lookout gets one of its own."""
    seen = case["observed"]
    pods = {each["metadata"]["name"]: each for each in seen["pods"]}
    judged = pods.pop(case["pod"])
    return DrawnFleet(
        seed=seed,
        namespaces={
            each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in seen.get("namespaces", ())
        },
        volumes=[_volume(each) for each in seen.get("volumes", ())],
        volume_claims=[_plain("PersistentVolumeClaim", each) for each in seen.get("volume_claims", ())],
        volume_limits=[
            *map(_limit, seen.get("csi_nodes", ())),
            *(_plain("VolumeAttachment", each) for each in seen.get("attachments", ())),
        ],
        device_claims=[_devices(each) for each in seen.get("resource_claims", ())],
        nodes=[_node(each) for each in seen["nodes"]],
        residents=[_resident(each) for each in pods.values()],
        pods=[_pod(judged)],
    )


def _plain(kind: str, seen: Manifest, **more: Any) -> Manifest:
    metadata = {key: told for key, told in seen["metadata"].items() if key not in _NOT_ASKED_FOR}
    made = {"apiVersion": _VERSIONS[kind], "kind": kind, **seen, "metadata": metadata}
    made.pop("status", None)
    return made | more


def _node(seen: Manifest) -> Manifest:
    allocatable = seen["status"]["allocatable"]
    status = {"allocatable": allocatable, "capacity": allocatable, "conditions": [dict(nodes.READY)]}
    return _plain("Node", seen, spec=seen.get("spec", {}), status=status)


def _pod(seen: Manifest) -> Manifest:
    spec = copy.deepcopy({"schedulerName": SCHEDULER, **seen["spec"]})
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [{"image": "registry.k8s.io/pause:3.9", **each} for each in spec[field]]
            for each in spec[field]:
                ports = each.get("ports", ())
                each["ports"] = [{"containerPort": port["hostPort"], **port} for port in ports if port.get("hostPort")]
    # What admission fills in can't be asked for: it follows from classes.
    if spec.pop("overhead", None):
        spec["runtimeClassName"] = amounts.RUNTIME
    if priority := spec.pop("priority", 0):
        spec["priorityClassName"] = PRIORITIES[priority // 100]
    for term in _terms(spec):
        _unmerge(term)
    if spec.get("nodeName"):
        spec["tolerations"] = [{"operator": "Exists"}]
    return _plain("Pod", seen, spec=spec)


def _terms(spec: Manifest) -> Iterator[Manifest]:
    """All that a pod says of other pods."""
    yield from spec.get("topologySpreadConstraints", ())
    for field in ("podAffinity", "podAntiAffinity"):
        told = spec.get("affinity", {}).get(field, {})
        yield from told.get("requiredDuringSchedulingIgnoredDuringExecution", ())


def _unmerge(term: Manifest) -> None:
    """The API server writes these keys into the selector, and would not have a pod where that is done already."""
    selected = {each["key"] for each in term.get("labelSelector", {}).get("matchExpressions", ())}
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if field in term:
            term[field] = [key for key in term[field] if key not in selected]


def _resident(seen: Manifest) -> Resident:
    status = dict(seen.get("status", {}))
    for field in ("containerStatuses", "initContainerStatuses"):
        if field in status:
            status[field] = [{"image": "pause", "imageID": "", "restartCount": 0, **each} for each in status[field]]
    return Resident(_pod(seen), status, bool(seen["metadata"].get("deletionTimestamp")))


def _volume(seen: Manifest) -> Manifest:
    spec = dict(seen["spec"])
    if "claimRef" in spec:
        kept = {key: told for key, told in spec["claimRef"].items() if key != "uid"}
        spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **kept}
    return _plain("PersistentVolume", seen, spec={"persistentVolumeReclaimPolicy": "Retain", **spec})


def _limit(seen: Manifest) -> Manifest:
    drivers = [{"nodeID": seen["metadata"]["name"], "topologyKeys": [], **each} for each in seen["spec"]["drivers"]]
    return _plain("CSINode", seen, spec={"drivers": drivers})


def _devices(seen: Manifest) -> Manifest:
    status = seen["status"]
    results = [{"request": claims.REQUEST, **each} for each in status["allocation"]["devices"]["results"]]
    allocation = {**status["allocation"], "devices": {"results": results}}
    return _plain("ResourceClaim", seen, spec=claims.spec(), status={"allocation": allocation})
