"""Nodes and pods for tests: a fleet of given shapes, and pods in any state a pod can be in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.lab.api import Manifest
from tests.lab.capacity import GPU, KWOK_ANNOTATION, P4D, InstanceType


@dataclass(frozen=True)
class Shape:
    """What the nodes of one part of a fleet have in common."""

    kind: InstanceType = P4D
    pool: str = "a100-training"  # empty: a node without Karpenter
    capacity_type: str = "on-demand"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    # Without a kubelet, even a fake one, the node turns NotReady after 40 s, as a dead one does.
    alive: bool = True

    def node(self, name: str, zone: str) -> Manifest:
        resources = self.kind.resources()
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": self.kind.name,
            "topology.kubernetes.io/zone": zone,
            "karpenter.sh/capacity-type": self.capacity_type,
            **({"karpenter.sh/nodepool": self.pool} if self.pool else {}),
            **self.labels,
        }
        life = {KWOK_ANNOTATION: "fake"} if self.alive else {}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {**life, **self.annotations}},
            "spec": {"taints": list(self.taints)} if self.taints else {},
            "status": {"capacity": resources, "allocatable": resources},
        }


def nodes(count: int, shape: Shape | None = None, prefix: str = "gpu") -> list[Manifest]:
    """`count` nodes of one shape, named prefix-0, prefix-1, …, spread over the zones of their type."""
    shape = shape or Shape()
    zones = shape.kind.zones
    return [shape.node(f"{prefix}-{number}", zones[number % len(zones)]) for number in range(count)]


@dataclass(frozen=True)
class Pod:
    """A pod in the making; each method gives another with one thing more, and `manifest` the result."""

    name: str
    namespace: str = "default"
    gpus: int = 0
    cpu: str = "100m"
    memory: str = "128Mi"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)

    def on(self, node: str) -> "Pod":
        """Already bound: no scheduler sees it."""
        return self.with_spec(nodeName=node)

    def gated(self, *gates: str) -> "Pod":
        """Held back by scheduling gates."""
        return self.with_spec(schedulingGates=[{"name": gate} for gate in gates])

    def nowhere(self) -> "Pod":
        """Asks for a label that no node has: pending and unschedulable."""
        return self.with_spec(nodeSelector={"lab/nowhere": "true"})

    def unseen(self) -> "Pod":
        """Names a scheduler that does not exist: pending, and never judged."""
        return self.with_spec(schedulerName="nobody")

    def starting_after(self, duration: str) -> "Pod":
        """Its containers take that long to start."""
        return self._annotated({"lab/starts-after": duration})

    def ending(self, phase: str = "Succeeded", after: str = "0s") -> "Pod":
        """Its containers end by themselves: Succeeded or Failed."""
        return self._annotated({"lab/ends": phase, "lab/ends-after": after})

    def dying_slowly(self, seconds: int, grace_seconds: int = 30) -> "Pod":
        """Once deleted it takes that long to go, but never more than its grace."""
        return self._annotated({"lab/dies-after": str(seconds)}).with_spec(terminationGracePeriodSeconds=grace_seconds)

    def resizing(self, outcome: str = "Done", after: str = "1s") -> "Pod":
        """A resize is enacted after a while (Done), or is answered Deferred or Infeasible and stays so."""
        return self._annotated({"lab/resize": outcome, "lab/resize-after": after})

    def tolerating(self, key: str) -> "Pod":
        tolerations = [*self.spec.get("tolerations", ()), {"key": key, "operator": "Exists"}]
        return self.with_spec(tolerations=tolerations)

    def with_spec(self, **fields: Any) -> "Pod":
        """Any other field of the pod's spec."""
        return replace(self, spec={**self.spec, **fields})

    def manifest(self) -> Manifest:
        gpus = {GPU: str(self.gpus)} if self.gpus else {}
        resources = {"requests": {"cpu": self.cpu, "memory": self.memory, **gpus}, "limits": gpus}
        metadata: Manifest = {"name": self.name, "namespace": self.namespace}
        metadata |= {"labels": dict(self.labels), "annotations": dict(self.annotations)}
        container = {"name": "main", "image": "registry.k8s.io/pause:3.9", "resources": resources}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container], **self.spec},
        }

    def _annotated(self, annotations: Mapping[str, str]) -> "Pod":
        return replace(self, annotations={**self.annotations, **annotations})


def is_ready(node: Manifest | None) -> bool:
    """Whether a Node says that it is Ready, and the taint it was born with (not-ready) has been taken off."""
    conditions = (node or {}).get("status", {}).get("conditions", ())
    taints = (node or {}).get("spec", {}).get("taints", ())
    says_so = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return says_so and not any(each["key"].startswith("node.kubernetes.io/") for each in taints)


def is_running(pod: Manifest | None) -> bool:
    """Whether a Pod says that it runs."""
    return bool((pod or {}).get("status", {}).get("phase") == "Running")


def is_initialized(claim: Manifest | None) -> bool:
    """Whether Karpenter has done with a NodeClaim: before, its machine is on its way, though pods may run there."""
    conditions = (claim or {}).get("status", {}).get("conditions", ())
    return any(each["type"] == "Initialized" and each["status"] == "True" for each in conditions)
