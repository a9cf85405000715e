"""Pools on the lab whose nodes Karpenter bought, and the loop that scales them, by a clock that is set by hand.

All is real but the hour: policies are rendered, the cluster is read and written with the rights that deploy/core
grants, memory is kept in its ConfigMap, and nodes leave by Karpenter's finalizer. Owner of the hour, and of the loop.
"""

import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import yaml

from reconciler.controller.cluster import current_instant
from reconciler.controller.policies import Origins, check
from reconciler.kube.apply.execute import Executor
from reconciler.kube.client import Client
from reconciler.kube.cluster import LiveCluster
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.kube.observe import observe_once
from reconciler.loop.cycle import Cycle, InProcess, LoopDependencies
from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.evaluation import ScalingReport
from reconciler.model.plan.inputs import CycleResult
from reconciler.policy.resolve import chosen
from reconciler.ports import Wished
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.controlled import POOL, Site
from tests.stages.opening import open_nodes

DELAY_MS = 600_000
SETTLED_MS = 120_000  # after which a node that was bought is empty like any other
MOST = 20  # nodes of a pool

Marked = tuple[str, int, str]  # node, its time in ms, effect


class Moment(msgspec.Struct, frozen=True):
    """One pool after a cycle; size and target as they were before it."""

    at: Instant
    size: int
    target: int
    done: dict[str, int]  # how often each thing was done to its nodes, by the code of its reason
    marked: list[Marked]  # of nodes that are not being deleted, by name
    nodes: set[str]  # those


class Scaled:
    """A Policies, a Clock and a Fence to its own cycles."""

    def __init__(self, lab: Lab, folder: Path, pools: Sequence[str]) -> None:
        lab.start("scheduler", "kwok", "karpenter")
        self.lab, self.admin, self.pools = lab, lab.admin, pools
        self._site = Site(lab, folder)
        for name in pools:
            self._site.write(name)
            (self._site.policies / f"{name}-provisioner.yaml").write_text(yaml.safe_dump(_provisioner(name)))
        self._desired: Desired = chosen(check(Origins((self._site.policies,))).resolved, None)
        token = self._site.controller.credential.token
        self._client = Client.at(lab.admin.url, lab.admin.authority, token)
        self._brain = InProcess()
        self._applying = Executor(self._client)
        self._now = current_instant()

    def close(self) -> None:
        self._client.close()
        self._site.clean()

    # What happens

    def buys(self, nodes: int) -> None:
        """Karpenter buys so many nodes a pool for as many pods; they have been there for a while then."""
        self.cycle()
        for pool in self.pools:
            self.lab.load(_pod(pool, f"{pool}-{number}").manifest() for number in range(nodes))
        wanted = [f"{pool}-{number}" for pool in self.pools for number in range(nodes)]
        deadline = time.monotonic() + 120
        while not all(fleet.is_running(self.admin.get("pods", name, "default")) for name in wanted):
            assert time.monotonic() < deadline
            open_nodes(self.admin)
            time.sleep(0.2)
        self._drop_unused({each["spec"].get("nodeName") for each in self.admin.list("pods", "default")})
        for claim in self.claims():
            self.admin.wait_for("nodeclaims", claim, fleet.is_initialized)
        self._now = Instant(current_instant() + SETTLED_MS)
        self.cycle()  # in which nodes get their labels

    def _drop_unused(self, used: Collection[str | None]) -> None:
        """On a busy machine Karpenter may buy a second node for a pod, before it sees the first."""
        claims = self.admin.list("nodeclaims")
        unused = [each["metadata"]["name"] for each in claims if each["status"].get("nodeName") not in used]
        for name in unused:
            self.admin.delete("nodeclaims", name)
        for name in unused:
            self.admin.wait_for("nodeclaims", name, lambda found: found is None)

    def ends(self, pods: Sequence[str]) -> None:
        for name in pods:
            self.admin.delete("pods", name, "default", grace_seconds=0)
        for name in pods:
            self.admin.wait_for("pods", name, lambda found: found is None, "default")

    def comes(self, pool: str, pods: Sequence[str]) -> list[str]:
        """Pods come, and run; says on which nodes."""
        self.lab.load(_pod(pool, name).manifest() for name in pods)
        running = [self.admin.wait_for("pods", name, fleet.is_running, "default") for name in pods]
        return [str(pod["spec"]["nodeName"]) for pod in running]

    def at(self, moment: int) -> dict[str, Moment]:
        """It is that hour, and there is a cycle."""
        self._now = Instant(moment)
        return self.cycle()

    def cycle(self) -> dict[str, Moment]:
        """One pass over the cluster as it is now, all of which takes effect; by pool."""
        observed = observe_once(self._client)
        cluster = LiveCluster(lambda: observed, self._applying)
        memory = ConfigMapMemory(self._client, names.OWN_NAMESPACE)
        cycled = Cycle(LoopDependencies(self, cluster, memory, self._brain, self)).once(self)
        assert not cycled.trouble, cycled.trouble
        assert {each.result for each in cycled.outcomes} <= {"done"}, cycled.outcomes
        nodes = [each for each in self.admin.list("nodes") if "deletionTimestamp" not in each["metadata"]]
        return {pool: _moment(cycled, pool, nodes) for pool in self.pools}

    def claims(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.admin.list("nodeclaims")}

    # The ports

    def wish(self, cluster_uid: str) -> Wished:
        return Wished(self._desired)

    def now(self) -> Instant:
        return self._now

    def wait(self, until: Instant | None) -> None:
        raise AssertionError("waiting is not supported")

    def holds(self) -> bool:
        return True


def _moment(cycled: CycleResult, pool: str, nodes: Sequence[Manifest]) -> Moment:
    assert cycled.plan
    (size,) = [each for each in cycled.plan.report(ScalingReport).sizes if each.pool == pool]
    done = [each for each in cycled.plan.decisions if each.pool == pool and each.subject.kind == "Node"]
    codes = Counter(each.reason.code for each in done if not isinstance(each.act, Hold))
    own = [each for each in nodes if each["metadata"]["labels"].get(names.KARPENTER_POOL) == pool]
    marked = sorted(
        (node["metadata"]["name"], int(taint["value"]) * 1_000, taint["effect"])
        for node in own
        for taint in node["spec"].get("taints", ())
        if taint["key"] == names.DELETION_TIME
    )
    there = {each["metadata"]["name"] for each in own}
    return Moment(cycled.at, size.size, size.target, dict(codes), marked, there)


def _provisioner(pool: str) -> Manifest:
    spec = {"poolName": pool, "minSize": 0, "maxSize": MOST, "minGPUUtilizationPercent": 80, "scaleDownDelay": "10m"}
    return {"apiVersion": "gpu.scheduling/v1", "kind": "NodeProvisioner", "metadata": {"name": pool}, "spec": spec}


def _pod(pool: str, name: str) -> fleet.Pod:
    """It needs a whole node of the pool."""
    whole = fleet.Pod(name, gpus=POOL["devices"]["count"], cpu="1")  # type: ignore[index]
    return whole.with_spec(nodeSelector={names.KARPENTER_POOL: pool})
