"""What one tenant can put into the cluster to make a plan dear, as the API server would send it.

Each bomb is a sort of objects in namespace `hostile`; `many` says how many pods, and most of what a pod says is its own.
"""

from collections.abc import Callable, Iterator
from typing import Any

Words = dict[str, Any]

NAMESPACE = "hostile"
GATE = "gpu.scheduling/capacity"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def waiting(number: int, **spec: Any) -> Words:
    """A pod that waits for a GPU behind our gate."""
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    name = f"bomb-{number:05}"
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-10-01T00:00:00Z",
            "labels": {"app": name, "team": NAMESPACE},
        },
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}],
            "schedulingGates": [{"name": GATE}],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def bound(number: int, node: str, **spec: Any) -> Words:
    """One that runs."""
    made = waiting(number, **spec)
    made["spec"] |= {"nodeName": node}
    del made["spec"]["schedulingGates"]
    made["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": "1m"}}}]
    made["status"] = {"phase": "Running"}
    return made


def anti(number: int, terms: int, key: str = HOSTNAME) -> Words:
    found = [
        {"topologyKey": key, "labelSelector": {"matchLabels": {"app": f"other-{number}-{each}"}}}
        for each in range(terms)
    ]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": found}}


def near(number: int, terms: int) -> Words:
    found = [
        {"topologyKey": f"example.com/{number}-{each}", "labelSelector": {"matchLabels": {"team": NAMESPACE}}}
        for each in range(terms)
    ]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": found}}


def node_terms(number: int, terms: int, values: int) -> Words:
    found = [
        {
            "matchExpressions": [
                {
                    "key": f"example.com/{number}-{each}",
                    "operator": "NotIn",
                    "values": [f"{number}-{each}-{one}" for one in range(values)],
                }
            ]
        }
        for each in range(terms)
    ]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}}


def tolerations(number: int, many: int) -> list[Words]:
    """All of them of one key, so that an index of keys is of no help."""
    return [{"key": "nvidia.com/gpu", "operator": "Equal", "value": f"{number}-{each}"} for each in range(many)] + [
        {"key": "nvidia.com/gpu", "operator": "Exists"}
    ]


def everybody(number: int, terms: int) -> Words:
    """Terms that no label helps to find: each asks of every pod whether it has some label."""
    found = [
        {
            "topologyKey": HOSTNAME,
            "namespaceSelector": {},
            "labelSelector": {"matchExpressions": [{"key": f"key-{number}-{each}", "operator": "Exists"}]},
        }
        for each in range(terms)
    ]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": found}}


def alike_terms(number: int, terms: int) -> Words:
    """Terms that all mean all pods of the namespace, each a little otherwise."""
    found = [
        {
            "topologyKey": ZONE,
            "labelSelector": {
                "matchExpressions": [
                    {"key": "team", "operator": "In", "values": [NAMESPACE, f"x-{number}-{each}"]},
                ]
            },
        }
        for each in range(terms)
    ]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": found}}


def spreads(number: int, many: int) -> list[Words]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": HOSTNAME,
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {"app": f"other-{number}-{each}"}},
        }
        for each in range(many)
    ]


def ports(number: int, many: int) -> list[Words]:
    listed = [{"containerPort": 80, "hostPort": 1 + (number * many + each) % 65_000} for each in range(many)]
    amounts = {"nvidia.com/gpu": "1"}
    return [{"name": "main", "ports": listed, "resources": {"requests": amounts, "limits": amounts}}]


def resources(number: int, many: int) -> list[Words]:
    amounts = {f"example.com/r-{number}-{each}": "1" for each in range(many)} | {"nvidia.com/gpu": "1"}
    return [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]


def volumes(number: int, many: int) -> list[Words]:
    return [
        {"name": f"v{each}", "persistentVolumeClaim": {"claimName": f"claim-{number}-{each}"}} for each in range(many)
    ]


PODS: dict[str, Callable[[int], Words]] = {
    "plain": waiting,
    "priorities": lambda n: waiting(n, priority=n),
    "tolerations": lambda n: waiting(n, tolerations=tolerations(n, 20)),
    "tolerations-many": lambda n: waiting(n, tolerations=tolerations(n, 120)),
    "selectors": lambda n: waiting(n, nodeSelector={f"example.com/{n}-{each}": str(each) for each in range(10)}),
    "node-terms": lambda n: waiting(n, affinity=node_terms(n, 10, 10)),
    "anti": lambda n: waiting(n, affinity=anti(n, 10)),
    "anti-keys": lambda n: waiting(n, affinity=anti(n, 10, f"example.com/{n}")),
    "near": lambda n: waiting(n, affinity=near(n, 10)),
    "everybody": lambda n: waiting(n, affinity=everybody(n, 10)),
    "alike": lambda n: waiting(n, affinity=alike_terms(n, 10)),
    "spread": lambda n: waiting(n, topologySpreadConstraints=spreads(n, 5)),
    "ports": lambda n: waiting(n, containers=ports(n, 20)),
    "resources": lambda n: waiting(n, containers=resources(n, 10)),
    "volumes": lambda n: waiting(n, volumes=volumes(n, 10)),
}


def pods(kind: str, many: int) -> Iterator[Words]:
    return map(PODS[kind], range(many))
