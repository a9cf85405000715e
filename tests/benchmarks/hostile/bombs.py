"""What one tenant can put into the cluster to make a plan dear, as the API server would send it.

Each bomb is a sort of objects in namespace `hostile`; `many` says how many of them. What one says is its own.
"""

from collections.abc import Callable, Iterator
from typing import Any

from reconciler.model.cluster import bounds

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
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "bombs", "uid": "uid-bombs", "controller": True}
            ],
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


def at_the_bound(number: int) -> Words:
    """As much of everything as one pod may say."""
    affinity = {
        **anti(number, bounds.MOST_POD_TERMS),
        **node_terms(number, bounds.MOST_NODE_TERMS, bounds.MOST_VALUES // bounds.MOST_NODE_TERMS),
    }
    made = waiting(
        number,
        affinity=affinity,
        tolerations=tolerations(number, bounds.MOST_TOLERATIONS - 1),
        nodeSelector={f"example.com/{number}-{each}": str(each) for each in range(bounds.MOST_NODE_LABELS)},
        topologySpreadConstraints=spreads(number, bounds.MOST_SPREADS),
        containers=ports(number, bounds.MOST_PORTS),
        volumes=volumes(number, bounds.MOST_VOLUMES),
    )
    made["metadata"]["labels"] = {f"label-{number}-{each}": "x" for each in range(bounds.MOST_LABELS)}
    return made


PODS["at-the-bound"] = at_the_bound
PODS["16000-tolerations"] = lambda n: waiting(n, tolerations=tolerations(n, 16_000))
PODS["200-terms"] = lambda n: waiting(n, affinity=anti(n, 200))


def metadata(name: str, **more: Any) -> Words:
    return {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "resourceVersion": "1", **more}


def budget(number: int, selector: Words) -> Words:
    status = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    return {
        "metadata": metadata(f"budget-{number:05}", generation=1),
        "spec": {"minAvailable": 1, "selector": selector},
        "status": {**status, "observedGeneration": 1},
    }


def expression_budget(number: int) -> Words:
    """No label tells whom it selects: it has to be compared with every pod."""
    return budget(number, {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"x-{number}"]}]})


def team_budget(number: int) -> Words:
    found = budget(number, {"matchLabels": {"team": NAMESPACE}})
    found["spec"]["selector"]["matchExpressions"] = [{"key": "app", "operator": "In", "values": [f"x-{number}"]}]
    return found


def daemon_set(number: int) -> Words:
    spec = waiting(number, tolerations=tolerations(number, 20))["spec"]
    return {
        "metadata": metadata(f"daemon-{number:05}"),
        "spec": {"selector": {"matchLabels": {"app": f"d-{number}"}}, "template": {"spec": spec}},
    }


def gpu_claim(number: int) -> Words:
    """Two claims a gang, of which one asks for more GPUs than any pool has."""
    return {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "GpuClaim",
        "metadata": metadata(f"claim-{number:05}"),
        "spec": {"devices": {"count": 1 if number % 2 else 64}, "gangRef": f"gang-{number // 2}"},
    }


def of_a_gang(number: int) -> Words:
    made = waiting(number)
    made["metadata"]["annotations"] = {"gpu.scheduling/claim": f"claim-{number:05}"}
    return made


def volume_claim(number: int) -> Words:
    """Each of a size of its own."""
    return {
        "metadata": metadata(f"claim-{number // 10}-{number % 10}"),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": str(2**30 + number)}},
            "storageClassName": "local",
            "selector": {"matchLabels": {"n": str(number)}},
        },
        "status": {"phase": "Pending"},
    }


Made = dict[str, Iterator[Words]]


OWNER: Words = {
    "metadata": {"name": "bombs", "namespace": NAMESPACE, "uid": "uid-bombs", "resourceVersion": "1"},
    "spec": {"replicas": 5_000, "selector": {"matchLabels": {"team": NAMESPACE}}},
    "status": {"replicas": 5_000},
}


def _pods(kind: str) -> Callable[[int], Made]:
    return lambda many: {"Pod": map(PODS[kind], range(many))}


def running(many: int, nodes: int = 500) -> Iterator[Words]:
    """Pods on nodes, each with a label of its own."""
    return (bound(each, f"ip-10-{each % nodes // 250}-{each % nodes % 250}-7.ec2.internal") for each in range(many))


# By name, what is made of so many.
BOMBS: dict[str, Callable[[int], Made]] = {
    **{kind: _pods(kind) for kind in PODS},
    "expression-budgets": lambda many: {
        "Pod": running(many),
        "PodDisruptionBudget": map(expression_budget, range(many)),
    },
    "team-budgets": lambda many: {"Pod": running(many), "PodDisruptionBudget": map(team_budget, range(many))},
    "daemon-sets": lambda many: {"Pod": map(waiting, range(100)), "DaemonSet": map(daemon_set, range(many))},
    "gangs": lambda many: {"Pod": map(of_a_gang, range(many)), "GpuClaim": map(gpu_claim, range(many))},
    "volume-claims": lambda many: {
        "Pod": map(PODS["volumes"], range(many)),
        "PersistentVolumeClaim": map(volume_claim, range(many * 10)),
    },
}
