"""A fleet as large as they come, as the JSON that an API server sends: the same bytes for the same seed."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.fleet_pods import pod, template
from tests.benchmarks.fleet_words import conditions, metadata, resources

PAGE = 500
KINDS = ("Node", "Pod", "PodDisruptionBudget", "ReplicaSet", "DaemonSet", "NodePool", "NodeClaim")
DAEMONS = ("node-exporter", "cilium", "ebs-csi-node", "dcgm-exporter", "nvidia-device-plugin")
TYPES = ("p4d.24xlarge", "p5.48xlarge", "g6.12xlarge", "m7i.8xlarge")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@dataclass(frozen=True)
class BigFleet:
    """Every twenty pods to a node: five of DaemonSets, the others of ReplicaSets of about fifty each."""

    nodes: int = 5_000
    pods: int = 100_000
    seed: int = 1
    replicas: int = 50
    pools: int = 20
    words: random.Random = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", random.Random(self.seed))

    @property
    def daemon_pods(self) -> int:
        return min(self.nodes * len(DAEMONS), self.pods)

    @property
    def sets(self) -> int:
        return -(-(self.pods - self.daemon_pods) // self.replicas)

    def pages(self, kind: str, size: int = PAGE) -> Iterator[bytes]:
        """The lists that the API server would send, one after the other."""
        made: list[dict[str, Any]] = []
        for each in self.objects(kind):
            if len(made) == size:
                yield listed(kind, made, more=True)
                made = []
            made.append(each)
        yield listed(kind, made, more=False)

    def objects(self, kind: str) -> Iterator[dict[str, Any]]:
        """As they stand in a list: without kind and version."""
        makers: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
            "Node": (self.nodes, self.node),
            "Pod": (self.pods, self.pod),
            "PodDisruptionBudget": (self.sets // 2, self.budget),
            "ReplicaSet": (self.sets, self.replica_set),
            "DaemonSet": (len(DAEMONS), self.daemon_set),
            "NodePool": (self.pools, self.node_pool),
            "NodeClaim": (self.nodes, self.node_claim),
        }
        count, make = makers[kind]
        return map(make, range(count))

    def node(self, number: int) -> dict[str, Any]:
        name, kind = f"ip-10-{number // 250}-{number % 250}-7.ec2.internal", TYPES[number % len(TYPES)]
        labels = {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "karpenter.k8s.aws/instance-category": kind[0],
            "karpenter.k8s.aws/instance-family": kind.split(".", maxsplit=1)[0],
            "karpenter.sh/capacity-type": "on-demand" if number % 3 else "spot",
            "karpenter.sh/initialized": "true",
            "karpenter.sh/nodepool": f"pool-{number % self.pools}",
            "karpenter.sh/registered": "true",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": kind,
            "topology.k8s.aws/zone-id": f"use1-az{number % 3}",
            "topology.kubernetes.io/region": "us-east-1",
            "topology.kubernetes.io/zone": ZONES[number % 3],
        }
        annotations = {
            "csi.volume.kubernetes.io/nodeid": f'{{"ebs.csi.aws.com":"i-{self.words.getrandbits(64):017x}"}}',
            "karpenter.sh/nodepool-hash": "13404397325346583456",
            "karpenter.sh/nodepool-hash-version": "v3",
            "node.alpha.kubernetes.io/ttl": "30",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        }
        return {
            "metadata": metadata(self.words, name, labels=labels, annotations=annotations, writers=3),
            "spec": {
                "providerID": f"aws:///{ZONES[number % 3]}/i-{self.words.getrandbits(64):017x}",
                "taints": [{"effect": "NoSchedule", "key": "nvidia.com/gpu", "value": "true"}],
            },
            "status": self._node_status(number, name),
        }

    def _node_status(self, number: int, name: str) -> dict[str, Any]:
        types = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        images = [
            {
                "names": [
                    f"registry.example.com/team-{each}/image-{each}@sha256:{self.words.getrandbits(256):064x}",
                    f"registry.example.com/team-{each}/image-{each}:v1.{each}.0",
                ],
                "sizeBytes": 100_000_000 + each,
            }
            for each in range(25)
        ]
        return {
            "addresses": [{"address": f"10.{number // 250}.{number % 250}.7", "type": "InternalIP"}],
            "allocatable": resources(95690, 1_150_000_000 + number % 7, 8),
            "capacity": resources(96000, 1_180_000_000, 8),
            "conditions": conditions(self.words, types, "Ready"),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": images,
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": f"{self.words.getrandbits(128):032x}",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kubeProxyVersion": "",
                "kernelVersion": "6.12.40-63.114.amzn2023.x86_64",
                "kubeletVersion": "v1.36.3",
                "machineID": f"{self.words.getrandbits(128):032x}",
                "operatingSystem": "linux",
                "osImage": "Amazon Linux 2023.8.20260808",
                "systemUUID": name,
            },
        }

    def pod(self, number: int) -> dict[str, Any]:
        if number < self.daemon_pods:
            node, daemon = divmod(number, len(DAEMONS))
            owner = ("DaemonSet", DAEMONS[daemon], "kube-system")
            return pod(self.words, owner, self._node_name(node), daemon)
        each, _ = divmod(number - self.daemon_pods, self.replicas)
        return pod(self.words, self._owner(each), self._node_name(self.words.randrange(self.nodes)), each)

    def budget(self, number: int) -> dict[str, Any]:
        _, name, namespace = self._owner(number)
        status = {"currentHealthy": 50, "desiredHealthy": 45, "disruptionsAllowed": 5, "expectedPods": 50}
        return {
            "metadata": metadata(self.words, name, namespace, writers=2),
            "spec": {"maxUnavailable": "10%", "selector": {"matchLabels": {"app": name.rpartition("-")[0]}}},
            "status": {**status, "observedGeneration": 1},
        }

    def replica_set(self, number: int) -> dict[str, Any]:
        _, name, namespace = self._owner(number)
        count = {"replicas": self.replicas}
        return {
            "metadata": metadata(self.words, name, namespace, labels={"app": name.rpartition("-")[0]}, writers=2),
            "spec": {**count, "selector": {"matchLabels": {"app": name}}, "template": template(name, number)},
            "status": {**count, "readyReplicas": self.replicas, "observedGeneration": 1},
        }

    def daemon_set(self, number: int) -> dict[str, Any]:
        spec = {"selector": {"matchLabels": {"app": DAEMONS[number]}}, "template": template(DAEMONS[number], number)}
        return {
            "metadata": metadata(self.words, DAEMONS[number], "kube-system", writers=2),
            "spec": spec,
            "status": {"currentNumberScheduled": self.nodes, "numberReady": self.nodes},
        }

    def node_pool(self, number: int) -> dict[str, Any]:
        requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [TYPES[number % 4]]}]
        reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
        return {
            "metadata": metadata(self.words, f"pool-{number}", writers=3),
            "spec": {
                "disruption": {"budgets": [{"nodes": "10%"}], "consolidateAfter": "Never"},
                "template": {"spec": {"nodeClassRef": reference, "requirements": requirements}},
            },
            "status": {"resources": resources(96000, 1_180_000_000, 8)},
        }

    def node_claim(self, number: int) -> dict[str, Any]:
        pool = f"pool-{number % self.pools}"
        types = ("Launched", "Registered", "Initialized", "Ready")
        return {
            "metadata": metadata(self.words, f"{pool}-{number:05}", labels={"karpenter.sh/nodepool": pool}, writers=2),
            "spec": {
                "expireAfter": "Never",
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                "requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": [pool]}],
            },
            "status": {
                "capacity": resources(96000, 1_180_000_000, 8),
                "allocatable": resources(95690, 1_150_000_000, 8),
                "conditions": conditions(self.words, types, *types),
                "imageID": "ami-0c55b159cbfafe1f0",
                "nodeName": self._node_name(number),
                "providerID": f"aws:///{ZONES[number % 3]}/i-{self.words.getrandbits(64):017x}",
            },
        }

    def _node_name(self, number: int) -> str:
        return f"ip-10-{number // 250}-{number % 250}-7.ec2.internal"

    def _owner(self, number: int) -> tuple[str, str, str]:
        """Of one revision of a Deployment: kind, name, namespace."""
        return "ReplicaSet", f"service-{number}-{number * 2654435761 % 2**32:08x}", f"team-{number % 200}"


def listed(kind: str, items: list[dict[str, Any]], more: bool) -> bytes:
    """One page."""
    heading = {"resourceVersion": "981245", **({"continue": "next"} if more else {})}
    versions = {"NodePool": "karpenter.sh/v1", "NodeClaim": "karpenter.sh/v1"}
    versions |= {"PodDisruptionBudget": "policy/v1", "ReplicaSet": "apps/v1", "DaemonSet": "apps/v1"}
    version = versions.get(kind, "v1")
    whole = {"kind": f"{kind}List", "apiVersion": version, "metadata": heading, "items": items}
    return json.dumps(whole, separators=(",", ":")).encode()
