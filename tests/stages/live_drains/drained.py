"""Pools on the lab whose nodes Karpenter bought, applications spread over them, and the controller that drains them."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.controlled import Site
from tests.stages.live_drains.applications import Application, agent, is_whole
from tests.stages.replica import PROGRAM

TIMES_AS_FAST = 10
_HASTENED = "tests.stages.live_drains.hastened"
_EAGER = {"utilizationThresholdPercent": 100, "scaleDownUnneededTime": "10s", "maxGracefulTerminationSeconds": 20}
_HOLDERS = "default"  # where pods are that keep nodes until applications are there


Runs = Mapping[str, Sequence[Application]]  # by pool


class Drained:
    """Pools by name, and what runs on each, in a namespace of that name."""

    def __init__(self, lab: Lab, folder: Path, runs: Runs, times_as_fast: int = TIMES_AS_FAST) -> None:
        lab.start("scheduler", "kwok", "karpenter")
        self.lab, self.admin, self.runs = lab, lab.admin, runs
        self.times_as_fast, self._began = times_as_fast, time.time()
        hastened = (_HASTENED, str(times_as_fast), str(self._began))
        self.site = Site(lab, folder, hastened if times_as_fast > 1 else PROGRAM)
        for pool in runs:
            self.admin.wait_for("namespaces", pool, _is_none_that_goes)
            self.admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": pool}})
            self.site.write(pool)

    def close(self) -> None:
        self.site.clean()

    def buys(self, nodes: Mapping[str, int]) -> None:
        """While a controller runs: so many nodes of each pool, over which what runs there is spread evenly."""
        for pool in nodes:
            self.admin.wait_for("nodepools", pool, bool)
        holders = [_holder(pool, number) for pool, count in nodes.items() for number in range(count)]
        self.lab.load(holders)
        self.until(lambda: self._running(_HOLDERS) == len(holders), within=120)
        for claim in self.admin.list("nodeclaims"):
            self.admin.wait_for("nodeclaims", claim["metadata"]["name"], fleet.is_initialized)
        self.until(lambda: not any(map(_is_closed, self.admin.list("nodes"))), within=120)
        for pool, applications in self.runs.items():
            self.lab.load([agent(pool), *(each for application in applications for each in application.of(pool))])
        self.until(self.is_whole, within=120)
        for each in holders:
            self.admin.delete("pods", each["metadata"]["name"], _HOLDERS, grace_seconds=0)
        self.until(lambda: not self.admin.list("pods", _HOLDERS))

    def now(self) -> float:
        """By the clock of the controller, in unix seconds."""
        return self.by_its_clock(time.time())

    def by_its_clock(self, seconds: float) -> float:
        """What the controller took that time for."""
        return self._began + self.times_as_fast * (seconds - self._began)

    def drains(self, pool: str, **fields: object) -> None:
        spec = {"poolNames": [pool], **_EAGER, **fields}
        policy = {"apiVersion": "gpu.scheduling/v1", "kind": "DrainPolicy", "metadata": {"name": pool}, "spec": spec}
        self.site.put(f"{pool}-drains.yaml", yaml.safe_dump(policy))

    def nodes(self, pool: str) -> list[Manifest]:
        """Those that stay."""
        found = self.admin.list("nodes", labelSelector=f"{names.KARPENTER_POOL}={pool}")
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def is_whole(self) -> bool:
        """Whether nobody misses a pod."""
        return all(
            is_whole(self.admin.get(application.plural, application.name, pool))
            for pool, applications in self.runs.items()
            for application in applications
        )

    def settles(self, pool: str, nodes: int, within: float = 240) -> None:
        """Until so many nodes are left, and none of them is to go."""

        def is_settled() -> bool:
            return len(found := self.nodes(pool)) <= nodes and not any(map(marks, found))

        self.until(is_settled, within, lambda: {each["metadata"]["name"]: marks(each) for each in self.nodes(pool)})

    def until(
        self, is_so: Callable[[], object], within: float = 60, how_it_stands: Callable[[], object] = lambda: ""
    ) -> None:
        deadline = time.monotonic() + within
        while not is_so():
            assert time.monotonic() < deadline, f"not within {within:g} s: {how_it_stands()}"
            time.sleep(0.2)

    def _running(self, namespace: str) -> int:
        return sum(fleet.is_running(each) for each in self.admin.list("pods", namespace))


def marks(node: Manifest) -> dict[str, str]:
    """What drains wrote onto a node: the value of each taint."""
    ours = {names.DRAINING, names.DRAIN_CANDIDATE}
    return {each["key"]: each.get("value", "") for each in node["spec"].get("taints", ()) if each["key"] in ours}


def _is_none_that_goes(namespace: Manifest | None) -> bool:
    return namespace is None or "deletionTimestamp" not in namespace["metadata"]


def _is_closed(node: Manifest) -> bool:
    return any(each["key"] == names.ARRIVING for each in node["spec"].get("taints", ()))


def _holder(pool: str, number: int) -> Manifest:
    """More than half of a machine's processors, and none of its GPUs."""
    return fleet.Pod(f"{pool}-{number}", cpu="60").with_spec(nodeSelector={names.KARPENTER_POOL: pool}).manifest()
