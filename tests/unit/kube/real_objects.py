"""Objects as API servers print them, one of each kind that is looked at, with much that nobody here looks at."""

import json
from typing import Any

from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from tests.unit.kube import real_volumes

Object = dict[str, Any]
SECRET = "hunter2"  # stands wherever people put secrets; no part of the product may tell it
TIME = "2026-11-02T08:00:00Z"


def seen(kind: str, field: str = "") -> ResourceKind:
    return next(each for each in RESOURCE_KINDS if each.kind == kind and field in {"", each.field})


def metadata(name: str, namespace: str = "", **more: Any) -> Object:
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": f"uid-of-{name}",
        "resourceVersion": "412",
        "generation": 2,
        "creationTimestamp": TIME,
        "managedFields": [
            {
                "manager": "kubectl",
                "operation": "Update",
                "apiVersion": "v1",
                "time": TIME,
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:annotations": {"f:example.com/note": {}}}},
            }
        ],
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"password": SECRET}),
            "example.com/note": SECRET,
            "karpenter.sh/do-not-disrupt": "true",
        },
        **more,
    }


AMOUNTS = {"cpu": "96", "memory": "1180000000Ki", "nvidia.com/gpu": "8", "pods": "250"}
READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fine", "lastTransitionTime": TIME}
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "train-7d9",
    "uid": "uid-of-train-7d9",
    "controller": True,
}

CONTAINER: Object = {
    "name": "main",
    "image": "registry.example.com/train:1",
    "command": ["train"],
    "args": [f"--password={SECRET}"],
    "env": [{"name": "PASSWORD", "value": SECRET}],
    "envFrom": [{"secretRef": {"name": "train"}}],
    "livenessProbe": {
        "httpGet": {"path": "/", "port": 80, "httpHeaders": [{"name": "Authorization", "value": SECRET}]}
    },
    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}],
    "resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"cpu": "500m", "nvidia.com/gpu": "2"}},
}
POD_SPEC: Object = {
    "containers": [CONTAINER],
    "initContainers": [{**CONTAINER, "name": "first", "resources": {}, "ports": []}],
    "nodeName": "gpu-1",
    "nodeSelector": {"karpenter.sh/nodepool": "a100"},
    "priority": 7,
    "terminationGracePeriodSeconds": 30,
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "volumes": [
        {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "settings", "secret": {"secretName": "train"}},
        {"name": "driver", "csi": {"driver": "example.com", "volumeAttributes": {"password": SECRET}}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
    ],
}


def _template() -> Object:
    return {"metadata": {"creationTimestamp": None, "labels": {"app": "train"}}, "spec": POD_SPEC}


def _policy(kind: str) -> Object:
    return {"apiVersion": "gpu.scheduling/v1", "kind": kind, "metadata": metadata("a100"), "spec": {"suspend": False}}


def _workload(kind: str, version: str = "apps/v1", **counts: int) -> Object:
    spec = {**counts, "selector": {"matchLabels": {"app": "train"}}, "template": _template()}
    status = {"replicas": 3, "readyReplicas": 2, "observedGeneration": 2, "conditions": [READY]}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata("train", "team-a"),
        "spec": spec,
        "status": status,
    }


OBJECTS: tuple[Object, ...] = (
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata("gpu-1", labels={"karpenter.sh/nodepool": "a100"}),
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "providerID": "aws:///us-east-1a/i-1",
            "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
        },
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
            "allocatable": AMOUNTS,
            "capacity": AMOUNTS,
            "conditions": [{**READY, "lastHeartbeatTime": TIME}],
            "images": [{"names": ["registry.example.com/train:1"], "sizeBytes": 5}],
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata("train-0", "team-a", labels={"app": "train"}, ownerReferences=[OWNER]),
        "spec": POD_SPEC,
        "status": {
            "phase": "Running",
            "startTime": TIME,
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": TIME}
            ],
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0, "state": {"running": {}}}],
        },
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata("train", "team-a"),
        "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": "train"}}},
        "status": {"disruptionsAllowed": 1, "expectedPods": 3, "disruptedPods": {"train-1": TIME}, "conditions": []},
    },
    _workload("ReplicaSet", replicas=3),
    _workload("StatefulSet", replicas=3),
    _workload("DaemonSet"),
    _workload("Deployment", replicas=3),
    _workload("Job", "batch/v1", parallelism=2, completions=4),
    _workload("ReplicationController", "v1", replicas=3),
    {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata("a100"),
        "spec": {"template": {"spec": {"expireAfter": "Never"}}, "limits": {"nodes": "4"}},
        "status": {"resources": {"nodes": "1"}},
    },
    {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": metadata("a100-x2k", labels={"karpenter.sh/nodepool": "a100"}),
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
            "expireAfter": "Never",
            "requirements": [],
        },
        "status": {
            "capacity": AMOUNTS,
            "allocatable": AMOUNTS,
            "conditions": [{**READY, "type": "Drifted", "reason": "NodePoolDrifted", "observedGeneration": 1}],
            "imageID": "ami-1",
            "nodeName": "gpu-1",
            "providerID": "aws:///us-east-1a/i-1",
            "lastPodEventTime": None,
        },
    },
    {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": metadata("gpu"),
        "spec": {"userData": f"#!/bin/sh\nexport PASSWORD={SECRET}", "role": "nodes"},
        "status": {"amis": [{"id": "ami-2", "name": "b"}, {"id": "ami-1", "name": "a"}], "conditions": [READY]},
    },
    {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": metadata("fake"),
        "spec": {"nodeRegistrationDelay": "1s"},
        "status": {"conditions": [READY]},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata("gpus", "team-a"),
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {
                            "driver": "gpu.nvidia.com",
                            "pool": "gpu-1",
                            "device": "gpu-0",
                            "bindingConditions": ["Attached"],
                        }
                    ]
                },
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}
                    ]
                },
            },
            "reservedFor": [{"resource": "pods", "name": "train-0", "uid": "uid-of-train-0"}],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": metadata("gpu-1-nvidia"),
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "gpu-1",
            "pool": {"name": "gpu-1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "attributes": {"uuid": {"string": "GPU-1"}}}],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": metadata("gpu.nvidia.com"),
        "spec": {"selectors": [{"cel": {"expression": "true"}}], "extendedResourceName": "nvidia.com/gpu"},
    },
    *real_volumes.objects(metadata, SECRET),
    *(
        _policy(kind)
        for kind in (
            "GpuPool",
            "NodeProvisioner",
            "DrainPolicy",
            "PressurePolicy",
            "ChangeGuard",
            "ChangeApproval",
            "GpuNodeStatus",
            "GpuClaim",
        )
    ),
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata("leader", "gpu-system"),
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-11-02T08:00:00.000000Z"},
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata("spare", labels={"gpu.scheduling/managed": "true"}),
        "value": -10,
        "globalDefault": False,
        "description": "gives way",
    },
)


def an(kind: str) -> Object:
    """A copy, to be changed at will."""
    found: Object = json.loads(json.dumps(next(each for each in OBJECTS if each["kind"] == kind)))
    return found


def kept_pod() -> Object:
    """One that we made ourselves, and so keep whole."""
    made = an("Pod")
    made["metadata"]["labels"]["gpu.scheduling/managed"] = "true"
    return made


def listed(*objects: Object, kind: str = "List", version: str = "v1") -> bytes:
    """As kubectl -o json prints it."""
    whole = {"apiVersion": version, "items": list(objects), "kind": kind, "metadata": {"resourceVersion": ""}}
    return json.dumps(whole, indent=4).encode()
