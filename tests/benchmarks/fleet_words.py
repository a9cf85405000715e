"""What objects of every kind have: names, writers, conditions, amounts."""

import random
from typing import Any


def metadata(
    words: random.Random,
    name: str,
    namespace: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    writers: int = 1,
) -> dict[str, Any]:
    """With the fields that each writer set, which in real objects are a third of the bytes."""
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": uid(words),
        "resourceVersion": str(words.randrange(10**6, 10**8)),
        "generation": 1,
        "creationTimestamp": moment(words),
        **({"labels": labels} if labels else {}),
        **({"annotations": annotations} if annotations else {}),
        "managedFields": [_writer(words, number, labels or {}) for number in range(writers)],
    }


def uid(words: random.Random) -> str:
    digits = f"{words.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def moment(words: random.Random) -> str:
    return f"2026-10-{words.randrange(1, 29):02}T{words.randrange(24):02}:{words.randrange(60):02}:00Z"


def conditions(words: random.Random, types: tuple[str, ...], *holding: str) -> list[dict[str, Any]]:
    """As nodes and NodeClaims have them: with a reason, and a message."""
    since = moment(words)
    return [
        {
            "type": each,
            "status": "True" if each in holding else "False",
            "reason": f"Kubelet{each}",
            "message": f"kubelet says {each} as it should",
            "lastHeartbeatTime": since,
            "lastTransitionTime": since,
        }
        for each in types
    ]


def resources(milli_cpu: int, memory_kib: int, gpus: int) -> dict[str, str]:
    return {
        "cpu": f"{milli_cpu}m" if milli_cpu % 1000 else str(milli_cpu // 1000),
        "ephemeral-storage": "482947890401",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{memory_kib}Ki",
        "nvidia.com/gpu": str(gpus),
        "pods": "250",
    }


def _writer(words: random.Random, number: int, labels: dict[str, str]) -> dict[str, Any]:
    managers = ("kube-controller-manager", "kubelet", "karpenter")
    spec: dict[str, Any] = {"f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:resources": {".": {}}}}}
    status: dict[str, Any] = {
        "f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:lastTransitionTime": {}, "f:status": {}}}
    }
    fields = {"f:metadata": {"f:labels": {".": {}, **{f"f:{key}": {} for key in labels}}}, "f:spec": spec}
    return {
        "manager": managers[number % 3],
        "operation": "Update",
        "apiVersion": "v1",
        "time": moment(words),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": status} if number else fields,
    }
