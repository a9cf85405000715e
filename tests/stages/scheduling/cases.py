"""What was seen when a pod was judged, as a case for tests/cases/fleet/agreed.yaml: without what no filter looks at."""

from collections.abc import Mapping
from typing import Any

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests.stages.scheduling.stage import Judged

Plain = dict[str, Any]

_METADATA = ("name", "namespace", "labels", "annotations", "ownerReferences", "deletionTimestamp")
_NOT_OF_A_POD = (
    "schedulerName",
    "priorityClassName",
    "preemptionPolicy",
    "restartPolicy",
    "terminationGracePeriodSeconds",
)
_ALIKE = {"beta.kubernetes.io/os", "kubernetes.io/os", "karpenter.sh/nodepool"}
_GIVEN_TO_ALL = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


def case(judged: Judged, observed: Observed) -> Mapping[str, Any]:
    """The pod, the nodes that passed for the scheduler, and what there was."""
    pods = [each for each in observed.pods if _matters(each, judged)]
    namespaces = {each.metadata.namespace for each in pods}
    keeping = {each.metadata.namespace for each in pods if each.spec.volumes}
    claiming = {each.metadata.namespace for each in pods if each.spec.resource_claims}
    claims = [each for each in observed.volume_claims if each.metadata.namespace in keeping]
    classes = {each.storage_class for each in claims}
    seen = {
        "nodes": [_node(each) for each in observed.nodes],
        "pods": [_pod(each) for each in pods],
        "namespaces": [_slim(each) for each in observed.namespaces if each.name in namespaces],
        "volumes": [_slim(each) for each in observed.volumes if keeping],
        "volume_claims": [_slim(each) for each in claims],
        "storage_classes": [_slim(each) for each in observed.storage_classes if each.metadata.name in classes],
        "csi_nodes": [_slim(each) for each in observed.csi_nodes if keeping],
        "csi_drivers": [_slim(each) for each in observed.csi_drivers if keeping],
        "attachments": [_slim(each) for each in observed.attachments if keeping],
        "resource_claims": [_slim(each) for each in observed.resource_claims if each.metadata.namespace in claiming],
    }
    name = judged.manifest["metadata"]["name"]
    return {"pod": name, "passed": sorted(judged.passed), "observed": {key: told for key, told in seen.items() if told}}


def _matters(pod: Pod, judged: Judged) -> bool:
    """Other pods that were judged at the same time have no part in it."""
    return bool(pod.node or pod.status.nominated_node_name or pod.metadata.uid == judged.uid)


def _slim(each: Any) -> Plain:
    told: Plain = msgspec.to_builtins(each)
    metadata = told["metadata"]
    told["metadata"] = {key: metadata[key] for key in _METADATA if metadata.get(key)}
    return told


def _node(each: Any) -> Plain:
    told = _slim(each)
    labels = told["metadata"].get("labels", {})
    told["metadata"]["labels"] = {key: told for key, told in labels.items() if key not in _ALIKE}
    told["status"] = {"allocatable": told["status"].get("allocatable", {})}
    if not told["spec"]:
        del told["spec"]
    return told


def _pod(each: Pod) -> Plain:
    told = _slim(each)
    # A claim of its own refers to the pod by its uid.
    told["metadata"]["uid"] = each.metadata.uid if any(one.ephemeral for one in each.spec.volumes) else each.name
    spec, status = told["spec"], told["status"]
    for field in _NOT_OF_A_POD:
        spec.pop(field, None)
    tolerations = [one for one in spec.pop("tolerations", ()) if one.get("key") not in _GIVEN_TO_ALL]
    if tolerations and not each.node:
        spec["tolerations"] = tolerations
    conditions = [one for one in status.pop("conditions", ()) if one["type"] != "PodScheduled"]
    if conditions:
        status["conditions"] = conditions
    if status.get("phase") in {"Pending", "Running"}:
        del status["phase"]
    if not status:
        del told["status"]
    return told
