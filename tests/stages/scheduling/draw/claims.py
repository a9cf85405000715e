"""ResourceClaims at random that have been met: on one node, in a zone, or anywhere."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.stages.scheduling.draw.chance import NAMESPACES, ZONE, ZONES, Chance, Manifest

REQUEST = "one"
_DRIVER = "lab.example.com"


@dataclass
class Devices:
    """The claims of one fleet, and which of them a pod of a namespace can name."""

    claims: list[Manifest] = field(default_factory=list)

    def named(self, namespace: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.claims if each["metadata"]["namespace"] == namespace]


def draw(chance: Chance, prefix: str, nodes: Sequence[str]) -> Devices:
    claims = [
        _claim(namespace, f"{prefix}-devices-{number}", _where(chance, nodes))
        for namespace in NAMESPACES
        for number in range(chance.randint(0, 2))
    ]
    return Devices(claims)


def _where(chance: Chance, nodes: Sequence[str]) -> Manifest:
    """A selector of nodes; nothing for devices that every node can reach."""
    kind = chance.choice(["node", "node", "zone", "anywhere"])
    if kind == "anywhere":
        return {}
    if kind == "zone":
        expression = {"key": ZONE, "operator": "In", "values": chance.some(ZONES, 1, 2)}
        return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    # As a device of one node is allocated.
    field_ = {"key": "metadata.name", "operator": "In", "values": [chance.choice(nodes)]}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field_]}]}}


def spec() -> Manifest:
    return {"devices": {"requests": [{"name": REQUEST, "exactly": {"deviceClassName": _DRIVER}}]}}


def _claim(namespace: str, name: str, where: Manifest) -> Manifest:
    result = {"request": REQUEST, "driver": _DRIVER, "pool": name, "device": "d0"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec(),
        "status": {"allocation": {"devices": {"results": [result]}, **where}},
    }
