"""Pods, claims and pools, as tests/cases/gpu_admission/pods.yaml describes them."""

import json
from base64 import b64decode
from copy import deepcopy
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.quantity import Quantity
from reconciler.protocol.admission.decision import Admission, Grounds, Refusal, decide
from reconciler.protocol.admission.review import read_review

NAMESPACE, CLAIM = "team-a", "train"
FIELD = {"fieldRef": {"fieldPath": "metadata.annotations['gpu.scheduling/devices']"}}


def pool(name: str, said: dict[str, Any]) -> Declared[GpuPool]:
    """A pool of nodes with 8 a100, unless the case says something else."""
    devices = Devices(
        model=said.get("model", "a100"), count=said.get("count", 8), memory=Quantity.parse(said.get("memory", "40Gi"))
    )
    spec = GpuPool(
        devices=devices,
        instance_types=[InstanceType(name="p4d.24xlarge")],
        node_class_ref=NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="gpu"),
        allocation=said.get("allocation", "plugin"),
    )
    return Declared("GpuPool", name, spec, ())


def grounds(case: dict[str, Any]) -> Grounds:
    claim = case.get("claim", {"devices": {"count": 2}})
    pools = case.get("pools", {"a100": {}})
    return Grounds(claim, tuple(pool(name, said) for name, said in sorted(pools.items())), case.get("device_class", ""))


def new_pod(case: dict[str, Any]) -> dict[str, Any]:
    """A pod as a ReplicaSet creates it: without a name."""
    annotations = {names.CLAIM: CLAIM, **case.get("annotations", {})}
    spec = {"containers": [{"name": "main", "image": "train:1", "resources": {}}], **case.get("spec", {})}
    return {"metadata": {"generateName": "train-", "annotations": annotations}, "spec": deepcopy(spec)}


def review_of(pod: dict[str, Any], **request: Any) -> bytes:
    """The body that the API server sends."""
    sent = {
        "uid": "1-2-3",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": NAMESPACE,
        "operation": "CREATE",
        "object": pod,
        "oldObject": None,
        **request,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": sent}).encode()


def decided(pod: dict[str, Any], on: Grounds) -> Admission | Refusal:
    reviewed = read_review(review_of(pod)).pod
    assert reviewed is not None
    return decide(reviewed, on)


def patched(pod: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The pod after a JSON Patch of `add` and `replace` (RFC 6902)."""
    result = deepcopy(pod)
    for each in operations:
        *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:])
        place: Any = result
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if isinstance(place, list) and each["op"] == "add":
            place.insert(int(last), each["value"])
        elif isinstance(place, list):
            place[int(last)] = each["value"]
        else:
            assert each["op"] == "add" or last in place
            place[last] = each["value"]
    return result


def operations_of(admission: Admission) -> list[dict[str, Any]]:
    """The patch as the API server reads it."""
    plain: list[dict[str, Any]] = json.loads(msgspec.json.encode(admission.patch))
    return plain


def response_in(body: bytes) -> dict[str, Any]:
    """The response of an answered AdmissionReview, with its patch decoded."""
    review = json.loads(body)
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = review["response"]
    if "patch" in response:
        response["patch"] = json.loads(b64decode(response["patch"]))
    return response
