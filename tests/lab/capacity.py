"""What Karpenter can buy in the lab: GPU instance types with prices, zones, capacity types, and NodePools of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.lab.api import Manifest

KWOK_ANNOTATION = "kwok.x-k8s.io/node"
GPU = "nvidia.com/gpu"
ZONES = ("eu-1a", "eu-1b", "eu-1c")
NODE_CLASS = "lab"

_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class InstanceType:
    """A machine that can be had: what is in it, where, and for how much an hour."""

    name: str
    gpus: int
    model: str
    cpu: int
    memory_gib: int
    prices: Mapping[str, float] = field(default_factory=dict)  # capacity type -> dollars an hour, made up
    zones: tuple[str, ...] = ZONES
    pods: int = 250

    def resources(self) -> dict[str, str]:
        """All of the machine, as Karpenter's file and a Node's status have it."""
        gpus = {GPU: str(self.gpus)} if self.gpus else {}
        return {"cpu": str(self.cpu), "memory": f"{self.memory_gib}Gi", "pods": str(self.pods), **gpus}

    def as_kwok(self) -> Manifest:
        """An entry of the KWOK provider's instance type file."""
        offerings = [
            {
                "Price": price,
                "Available": True,
                "Requirements": [
                    {"key": _CAPACITY_TYPE, "operator": "In", "values": [kind]},
                    {"key": _ZONE, "operator": "In", "values": [zone]},
                ],
            }
            for kind, price in sorted(self.prices.items())
            # A reservation needs an id, and the KWOK provider has no label for one: Karpenter would end itself.
            if kind != "reserved"
            for zone in self.zones
        ]
        return {
            "name": self.name,
            "architecture": "amd64",
            "operatingSystems": ["linux"],
            "offerings": offerings,
            "resources": {**self.resources(), "ephemeral-storage": "500Gi"},
        }


P4D = InstanceType("p4d.24xlarge", 8, "a100", 96, 1152, {"on-demand": 21.96, "reserved": 14.75})
P5 = InstanceType("p5.48xlarge", 8, "h100", 192, 2048, {"on-demand": 55.04, "spot": 31.20})
G5 = InstanceType("g5.xlarge", 1, "a10g", 4, 16, {"on-demand": 1.01, "spot": 0.42})
G6 = InstanceType("g6.12xlarge", 4, "l4", 48, 192, {"on-demand": 4.60, "spot": 1.90})
CPU_ONLY = InstanceType("m6i.2xlarge", 0, "", 8, 32, {"on-demand": 0.38, "spot": 0.15})

INSTANCE_TYPES = (P4D, P5, G5, G6, CPU_ONLY)


def node_class(name: str = NODE_CLASS, registration_delay: str = "0s") -> Manifest:
    """A class of nodes that come up `registration_delay` after they were launched."""
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": name},
        "spec": {"nodeRegistrationDelay": registration_delay},
    }


@dataclass(frozen=True)
class NodePool:
    """A NodePool over some instance types; `more` is merged over the spec, `template` over its template's spec."""

    name: str
    types: Sequence[InstanceType]
    capacity_types: Sequence[str] = ("on-demand",)
    zones: Sequence[str] = ZONES
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    template: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    def manifest(self) -> Manifest:
        requirements = [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [each.name for each in self.types]},
            {"key": _CAPACITY_TYPE, "operator": "In", "values": list(self.capacity_types)},
            {"key": _ZONE, "operator": "In", "values": list(self.zones)},
        ]
        template: Manifest = {
            "requirements": requirements,
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": NODE_CLASS},
            # Nothing of Karpenter's own accord, so that a test sees only what it asked for.
            "expireAfter": "Never",
            **self.template,
        }
        if self.taints:
            template["taints"] = list(self.taints)
        quiet = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
        return {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": self.name},
            "spec": {
                "template": {"metadata": {"labels": dict(self.labels)}, "spec": template},
                "disruption": quiet,
                **self.more,
            },
        }
