"""Fleets of which nodes are to go, read as what an API server sends is read; the same for the same size."""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from reconciler.kube.decode import page
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import Observed

PAGE = 500
PODS_A_NODE = 40
APPLICATIONS, DAEMONS = 498, 2  # 500 classes
ZONES = "abc"

Words = dict[str, Any]


def equal(nodes: int) -> Observed:
    """40 pods of 100 m on each node of 10,000 m."""
    return read(map(node, range(nodes)), (bare_pod(each, {"cpu": "100m"}) for each in range(nodes * PODS_A_NODE)))


def distinct(nodes: int) -> Observed:
    """As much in all, but no pod asks for just what another does: classes are of no help."""
    amounts = ({"cpu": f"{80 + each % 41}m", "memory": str(2**20 + each)} for each in range(nodes * PODS_A_NODE))
    return read(map(node, range(nodes)), (bare_pod(number, each) for number, each in enumerate(amounts)))


def diverse(nodes: int) -> Observed:
    """30 pods on each node: two of DaemonSets, and 28 of 498 applications that ask for this and that."""
    words = random.Random(nodes)
    return read(
        (tainted(number) for number in range(nodes)),
        (each for number in range(nodes) for each in diverse_pods(words, number)),
    )


def spread(nodes: int) -> Observed:
    """40 pods of each of as many applications as nodes: each spread over zones, every fourth apart by host too."""
    words = random.Random(nodes)
    zones = [range(zone, nodes, len(ZONES)) for zone in range(len(ZONES))]
    return read(
        map(node, range(nodes)),
        (each for application in range(nodes) for each in spread_pods(words, application, zones)),
    )


FLEETS: dict[str, Callable[[int], Observed]] = {
    "equal": equal,
    "distinct": distinct,
    "diverse": diverse,
    "spread": spread,
}


def read(nodes: Iterable[Words], pods: Iterable[Words]) -> Observed:
    seen = {each.kind: each for each in reversed(RESOURCE_KINDS) if not each.selector}
    return Observed(nodes=tuple(decoded(seen["Node"], nodes)), pods=tuple(decoded(seen["Pod"], pods)))


def decoded(seen: ResourceKind, objects: Iterable[Words]) -> Iterator[Any]:
    waiting = iter(objects)
    while items := list(islice(waiting, PAGE)):
        raw = {"kind": f"{seen.kind}List", "apiVersion": "v1", "metadata": {}, "items": items}
        yield from page(seen, json.dumps(raw).encode()).items


def name_of(number: int) -> str:
    return f"node-{number:05}"


def node(number: int) -> Words:
    labels = {
        "kubernetes.io/hostname": name_of(number),
        "topology.kubernetes.io/zone": ZONES[number % 3],
        "karpenter.sh/nodepool": f"pool-{number // 3 % 4}",
    }
    amounts = {"cpu": "10", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    return {
        "metadata": {"name": name_of(number), "uid": f"node-uid-{number}", "labels": labels},
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def tainted(number: int) -> Words:
    """Every eighth is for those that tolerate it."""
    taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if number % 8 == 0 else []
    return node(number) | {"spec": {"taints": taints}}


def bare_pod(number: int, amounts: dict[str, str]) -> Words:
    return pod(number, number // PODS_A_NODE, ("ReplicaSet", f"set-{number // 1_000}"), {"containers": [main(amounts)]})


def diverse_pods(words: random.Random, number: int) -> Iterator[Words]:
    for each in range(DAEMONS):
        fields = [{"key": "metadata.name", "operator": "In", "values": [name_of(number)]}]
        required = {"nodeSelectorTerms": [{"matchFields": fields}]}
        there = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        spec = {
            "containers": [main({"cpu": "50m", "memory": "128Mi"})],
            "affinity": there,
            "tolerations": [{"operator": "Exists"}],
        }
        yield pod(number * 30 + each, number, ("DaemonSet", f"daemon-{each}"), spec)
    for each in range(DAEMONS, 30):
        application = words.randrange(APPLICATIONS)
        yield pod(number * 30 + each, number, ("ReplicaSet", f"application-{application}"), needs(application))


def needs(application: int) -> Words:
    amounts = {"cpu": f"{50 + application % 10 * 25}m", "memory": f"{128 + application % 16 * 64}Mi"}
    spec: Words = {
        "containers": [main(amounts)],
        "tolerations": [{"key": "node.kubernetes.io/x", "operator": "Exists"}],
    }
    if application % 10 == 1:
        spec["nodeSelector"] = {"karpenter.sh/nodepool": f"pool-{application // 10 % 4}"}
    if application % 10 == 2:
        spec["nodeSelector"] = {"topology.kubernetes.io/zone": ZONES[application // 10 % 3]}
    if application % 4 == 3:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return spec


def spread_pods(words: random.Random, application: int, zones: list[range]) -> Iterator[Words]:
    """As evenly as can be from the start, on as many nodes as there are pods."""
    shares = [len(range(zone, PODS_A_NODE, len(zones))) for zone in range(len(zones))]
    on = [
        at for zone, share in enumerate(shares) for at in words.sample(zones[(zone + application) % len(zones)], share)
    ]
    for each, at in enumerate(on):
        owner = ("ReplicaSet", f"application-{application}")
        yield pod(application * PODS_A_NODE + each, at, owner, evenly(application))


def evenly(application: int) -> Words:
    alike = {"labelSelector": {"matchLabels": {"app": f"application-{application}"}}}
    over = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": "topology.kubernetes.io/zone"}
    amounts = {"cpu": f"{80 + application % 5 * 10}m", "memory": f"{128 + application % 16 * 64}Mi"}
    spec: Words = {"containers": [main(amounts)], "topologySpreadConstraints": [over | alike]}
    if application % 4 == 0:
        apart = [{"topologyKey": "kubernetes.io/hostname"} | alike]
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}
    return spec


def main(amounts: dict[str, str]) -> Words:
    return {"name": "main", "resources": {"requests": amounts, "limits": amounts}}


def pod(number: int, on: int, owner: tuple[str, str], spec: Words) -> Words:
    kind, name = owner
    status = {
        "phase": "Running",
        "containerStatuses": [
            {"name": "main", "ready": True, "resources": spec["containers"][0]["resources"]},
        ],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-18T12:00:00Z"}],
    }
    metadata = {
        "name": f"{name}-{number}",
        "namespace": "default",
        "uid": f"pod-uid-{number}",
        "labels": {"app": name},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}],
    }
    return {"metadata": metadata, "spec": spec | {"nodeName": name_of(on)}, "status": status}
