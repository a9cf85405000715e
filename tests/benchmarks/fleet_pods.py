"""Pods as a real cluster has them, about three kilobytes each: most of that is what nobody who plans looks at."""

import random
from typing import Any

from tests.benchmarks.fleet_words import metadata, moment


def pod(words: random.Random, owner: tuple[str, str, str], node: str, application: int) -> dict[str, Any]:
    """One of the pods that an owner (kind, name, namespace) made."""
    kind, name, namespace = owner
    suffix = f"{words.getrandbits(25):05x}"[-5:]
    labels = {"app": name.rpartition("-")[0] or name, "app.kubernetes.io/part-of": namespace}
    labels |= {"pod-template-hash" if kind == "ReplicaSet" else "controller-revision-hash": name.rpartition("-")[2]}
    about = metadata(words, f"{name}-{suffix}", namespace, labels, {"prometheus.io/scrape": "true"}, writers=2)
    about["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "blockOwnerDeletion": True,
            "controller": True,
            "kind": kind,
            "name": name,
            "uid": f"7c1e0d52-0000-4000-8000-{application:012}",
        }
    ]
    about["generateName"] = f"{name}-"
    token = f"kube-api-access-{words.getrandbits(25):05x}"[:21]
    placed = {"affinity": _bound_to(node)} if kind == "DaemonSet" else {}
    return {
        "metadata": about,
        "spec": {**spec(kind, application, token), **placed, "nodeName": node},
        "status": _status(words, application),
    }


def _bound_to(node: str) -> dict[str, Any]:
    """How a DaemonSet's controller sends each pod to its node."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def template(name: str, application: int) -> dict[str, Any]:
    """What a workload makes its pods from."""
    return {
        "metadata": {"creationTimestamp": None, "labels": {"app": name}},
        "spec": spec("ReplicaSet", application, ""),
    }


def spec(kind: str, application: int, token: str) -> dict[str, Any]:
    """`token` is the volume with the pod's own credentials, which admission adds."""
    made: dict[str, Any] = {
        "containers": [_container(application, token)],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {"fsGroup": 1000, "runAsNonRoot": True, "runAsUser": 1000},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": _tolerations(kind),
        "volumes": _volumes(application, token),
    }
    if kind == "ReplicaSet":
        term = {
            "labelSelector": {"matchLabels": {"app": f"service-{application}"}},
            "topologyKey": "kubernetes.io/hostname",
        }
        preferred = [{"podAffinityTerm": term, "weight": 100}]
        made["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        made["nodeSelector"] = {"karpenter.sh/nodepool": f"pool-{application % 20}"}
    return made


def _container(application: int, token: str) -> dict[str, Any]:
    mounts = [{"mountPath": "/etc/service", "name": "settings", "readOnly": True}]
    if token:
        secrets = "/var/run/secrets/kubernetes.io/serviceaccount"
        mounts.append({"mountPath": secrets, "name": token, "readOnly": True})
    amounts = _amounts(application)
    return {
        "args": ["--listen=:8080", f"--service=service-{application}", "--log-format=json"],
        "env": [
            *({"name": f"SETTING_{each}", "value": f"value-{application}-{each}"} for each in range(3)),
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
        ],
        "image": _image(application),
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "name": "main",
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "resources": {"limits": amounts, "requests": amounts},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": mounts,
    }


def _amounts(application: int) -> dict[str, str]:
    gpus = {"nvidia.com/gpu": str(application % 8 + 1)} if application % 5 == 0 else {}
    return {"cpu": f"{100 + application % 8 * 50}m", "memory": f"{256 + application % 16 * 64}Mi", **gpus}


def _tolerations(kind: str) -> list[dict[str, Any]]:
    timed = {"effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 300}
    found = [{**timed, "key": f"node.kubernetes.io/{each}"} for each in ("not-ready", "unreachable")]
    gpu = {"effect": "NoSchedule", "key": "nvidia.com/gpu", "operator": "Exists"}
    return [*found, {"operator": "Exists"}] if kind == "DaemonSet" else [*found, gpu]


def _volumes(application: int, token: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"configMap": {"defaultMode": 420, "name": f"service-{application}"}, "name": "settings"},
        {"emptyDir": {}, "name": "scratch"},
    ]
    if token:
        sources: list[dict[str, Any]] = [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        ]
        found.append({"name": token, "projected": {"defaultMode": 420, "sources": sources}})
    return found


def _status(words: random.Random, application: int) -> dict[str, Any]:
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    since, ready = moment(words), moment(words)
    conditions = [
        {
            "lastProbeTime": None,
            "lastTransitionTime": ready if "Ready" in each else since,
            "observedGeneration": 1,
            "status": "True",
            "type": each,
        }
        for each in types
    ]
    address = f"10.{words.randrange(256)}.{words.randrange(256)}.{words.randrange(256)}"
    amounts = _amounts(application)
    container = {
        "allocatedResources": amounts,
        "resources": {"limits": amounts, "requests": amounts},
        "containerID": f"containerd://{words.getrandbits(256):064x}",
        "image": _image(application),
        "imageID": f"{_image(application)}@sha256:{application:064x}",
        "lastState": {},
        "name": "main",
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": since}},
    }
    return {
        "conditions": conditions,
        "containerStatuses": [container],
        "hostIP": address,
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": "Burstable",
        "startTime": since,
        "observedGeneration": 1,
    }


def _image(application: int) -> str:
    return f"registry.example.com/team-{application % 200}/service-{application}:v1.{application % 40}.0"
