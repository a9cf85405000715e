"""Demand behind our gate on the lab, and what became of it: judged by the audit log and by what stands."""

import time
from collections.abc import Callable, Iterable
from copy import copy
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from reconciler.model import names
from tests.lab import capacity, fleet
from tests.lab.api import Manifest
from tests.lab.audit import WRITES, Entry
from tests.lab.identities import RECONCILER
from tests.lab.lab import Lab
from tests.stages.controlled import Site

SMART = "smart-gpu-scheduler-"
GATE = names.CAPACITY_GATE


class Demand:
    """A pool, the controller that looks after it, and pods that want whole nodes of it."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        lab.start("scheduler", "kwok", "karpenter")
        self.lab, self.admin, self.pool = lab, lab.admin, "a100"
        self.site = Site(lab, folder)

    def of(self, pool: str) -> "Demand":
        """The same of another pool."""
        other = copy(self)
        other.pool = pool
        return other

    def slowly(self, delay: str) -> None:
        """Machines register so long after they were launched."""
        self.admin.apply(capacity.node_class(registration_delay=delay))

    def write(self, **fields: object) -> None:
        self.site.write(self.pool, **fields)

    def provision(self, **fields: object) -> None:
        spec = {"poolName": self.pool, "minSize": 0, "maxSize": 40, "minGPUUtilizationPercent": 0, **fields}
        policy = {"apiVersion": "gpu.scheduling/v1", "kind": "NodeProvisioner", "metadata": {"name": self.pool}}
        self.site.put(f"{self.pool}-provisioner.yaml", yaml.safe_dump({**policy, "spec": spec}))

    def comes(self, count: int, *, gated: bool = True, prefix: str = "train") -> list[str]:
        """So many pods, each for all GPUs of a node."""
        pods = [self._pod(f"{prefix}-{number}", gated) for number in range(count)]
        self.lab.load(pods)
        return [pod["metadata"]["name"] for pod in pods]

    def runs(self, pods: Iterable[str]) -> set[str]:
        """The nodes on which they do."""
        found = [self.admin.wait_for("pods", name, fleet.is_running, "default", within=90) for name in pods]
        return {each["spec"]["nodeName"] for each in found}

    def smart(self) -> list[Manifest]:
        """Those that there are."""
        return [
            each
            for each in self.admin.list("pods", names.SMART_PODS_NAMESPACE)
            if each["metadata"]["name"].startswith(SMART)
        ]

    def nodes(self) -> list[Manifest]:
        found = self.admin.list("nodes")
        return [each for each in found if each["metadata"].get("labels", {}).get(names.KARPENTER_POOL) == self.pool]

    def claims(self) -> list[Manifest]:
        return [each for each in self.admin.list("nodeclaims") if not each["metadata"].get("deletionTimestamp")]

    def events(self, pod: str) -> list[Manifest]:
        found = self.admin.list("events", "default")
        return [
            each for each in found if (each.get("involvedObject") or each.get("regarding") or {}).get("name") == pod
        ]

    def type_of(self, node: str) -> str:
        found = self.admin.get("nodes", node)
        assert found
        return str(found["metadata"]["labels"][names.INSTANCE_TYPE])

    @staticmethod
    def retries(entries: Iterable[Entry]) -> list[int]:
        """Of smart pods that were made: how many ways had failed by then."""
        return sorted(int(each.body["metadata"]["annotations"][names.RETRIES]) for each in entries)

    def until(self, is_so: Callable[[], object], within: float = 60) -> None:
        deadline = time.monotonic() + within
        while not is_so():
            assert time.monotonic() < deadline, f"not within {within:g} s; there are {self._told()}"
            time.sleep(0.1)

    def _told(self) -> list[Any]:
        """How smart pods and machines stand, for whoever reads a failure."""
        smart = [(each["metadata"].get("annotations"), each["spec"].get("nodeName")) for each in self.smart()]
        return smart + [(each["metadata"]["name"], each.get("status")) for each in self.claims()]

    def _pod(self, name: str, gated: bool) -> Manifest:
        pod = fleet.Pod(name, gpus=8, cpu="1").with_spec(nodeSelector={names.KARPENTER_POOL: self.pool})
        return (pod.gated(GATE) if gated else pod).manifest()


def made(entries: Iterable[Entry]) -> list[Entry]:
    """Smart pods that we made, as the API server saw it."""
    return [
        each
        for each in entries
        if each.write.user == RECONCILER and each.write.verb == "patch" and _is_smart(each) and each.write.code == 201
    ]


def deleted(entries: Iterable[Entry]) -> list[Entry]:
    ours = (each for each in entries if each.write.user == RECONCILER and each.write.verb == "delete")
    return [each for each in ours if _is_smart(each)]


def chronicle(entries: Iterable[Entry]) -> str:
    """Who wrote NodeClaims, nodes and smart pods when, for whoever reads a failure."""
    shown = (each for each in entries if each.write.object.startswith(("nodeclaims", "nodes")) or _is_smart(each))
    lines = (f"{each.raw['requestReceivedTimestamp']} {' '.join(map(str, each.write))} {each.body}" for each in shown)
    return "\n".join(line[:400] for line in lines)


def claims_touched(entries: Iterable[Entry]) -> list[Entry]:
    """NodeClaims that we made or deleted, or tried to."""
    return [
        each
        for each in entries
        if each.write.user == RECONCILER and each.write.object.startswith("nodeclaims") and each.write.verb in WRITES
    ]


def moment(entry: Entry) -> datetime:
    """When the API server had the request."""
    return datetime.fromisoformat(entry.raw["requestReceivedTimestamp"])


def _is_smart(entry: Entry) -> bool:
    return f"/{SMART}" in entry.write.object
