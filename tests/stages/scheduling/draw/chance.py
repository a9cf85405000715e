"""Dice with a seed, and the words that fleets and pods are drawn from: few, so that they meet."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Manifest = dict[str, Any]

SCHEDULER = "witnessed"
NAMESPACES = ("default", "team-a", "lab-b", "lab-c")
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
RACK, TIER, GENERATION = "lab/rack", "lab/tier", "lab/generation"
ZONES, RACKS, TIERS = ("eu-1a", "eu-1b", "eu-1c"), ("r1", "r2", "r3", "r4"), ("gold", "silver")
GENERATIONS = ("3", "4", "5", "10", "x")  # one of them is no number, as labels may be
TOPOLOGY_KEYS = (ZONE, ZONE, HOSTNAME, HOSTNAME, RACK, TIER)
APPS, REVISIONS, TEAMS = ("web", "db", "train"), ("1", "2"), ("red", "blue")
GPU, DONGLE, HUGE_PAGES = "nvidia.com/gpu", "example.com/dongle", "hugepages-2Mi"
PRIORITIES = ("lab-low", "lab-middle", "lab-high")
NAMESPACE_LABELS: Mapping[str, Sequence[str]] = {"lab/env": ("prod", "dev"), "lab/owner": TEAMS}


class Chance(random.Random):
    """Dice with a seed."""

    def percent(self, percent: int) -> bool:
        return self.randrange(100) < percent

    def some(self, values: Sequence[T], least: int = 0, most: int | None = None) -> list[T]:
        """A few of the values, each at most once."""
        most = len(values) if most is None else min(most, len(values))
        return self.sample(values, self.randint(min(least, most), most))

    def name(self, values: Sequence[str]) -> str:
        return self.choice(values)


def pod_labels(chance: Chance) -> dict[str, str]:
    """What pods are known by; not all have all of it."""
    found = {}
    for key, values, percent in (("app", APPS, 90), ("revision", REVISIONS, 60), ("team", TEAMS, 40)):
        if chance.percent(percent):
            found[key] = chance.choice(values)
    return found


def container(name: str, requests: Mapping[str, str], **more: Any) -> Manifest:
    """A container with these requests; what can't be asked for without a limit gets the same limit."""
    limits = {key: amount for key, amount in requests.items() if key in {GPU, DONGLE, HUGE_PAGES}}
    resources = {"requests": dict(requests), **({"limits": limits} if limits else {})}
    return {"name": name, "image": "registry.k8s.io/pause:3.9", "resources": resources, **more}


def pod(name: str, chance: Chance, **spec: Any) -> Manifest:
    """A pod of some namespace with some labels, without containers as yet."""
    metadata = {"name": name, "namespace": chance.choice(NAMESPACES), "labels": pod_labels(chance)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"schedulerName": SCHEDULER, **spec}}
