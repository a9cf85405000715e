"""Killed after any effect and started again, the controller comes to the same end, and repeats no write.

Effects are the memory as it is kept and each write of an apply. What is kept in the memory counts as well: a node that
was counted against a guard before a crash is not counted again after it.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.kube.api_server import ApiRequest, ApiResponse
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.loop.cycle import Cycle, InProcess, LoopDependencies
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Outcome, Ref
from reconciler.model.plan.memory import Memory
from reconciler.model.policy.guards import Ceiling, ChangeGuard
from reconciler.plan.karpenter.template_hash import HASH_VERSION, template_hash
from reconciler.ports import Fence, Wished
from reconciler.simulate.world import World
from tests.unit.kube.configmap_server import ConfigMaps
from tests.unit.plan.manifests.stage import MACHINE, POLICY, WISHED, Json, manifest, patched, pool

NOW = Instant(1_795_000_000_000)
TAINT = {"key": "dedicated", "value": "training", "effect": "NoSchedule"}
NODES = 6


class Killed(BaseException):
    """The process is gone."""


class Kept(ConfigMaps):
    """What is remembered; each write is an effect."""

    def __init__(self, on_write: Callable[[str], None]) -> None:
        super().__init__()
        self._on_write = on_write

    def send(self, request: ApiRequest) -> ApiResponse:
        answer = super().send(request)
        self._on_write(f"{request.method} {request.path}")
        return answer


class Always:
    """A Fence."""

    def holds(self) -> bool:
        return True


def named(name: str, **spec: Any) -> Json:
    found: Json = patched(WISHED, {"metadata": {"name": name}, "spec": spec})
    return found


def wish(revision: str, *bodies: Json) -> Desired:
    """Everything of the pools of the same names, one of which was somebody else's; guarded by the hour."""
    guard = ChangeGuard(pool_names=["*"], per_hour=Ceiling(max_removed_nodes=100, max_disrupted_gpus=100))
    pools = [pool(name, {"adopt": name == "theirs"}) for name in sorted(body["metadata"]["name"] for body in bodies)]
    manifests = [manifest(body, body["metadata"]["name"]) for body in bodies]
    guards = (Declared("ChangeGuard", "fleet", guard, (("", POLICY),)),)
    return Desired(revision, "prod", tuple(pools), guards=guards, manifests=tuple(manifests))


BEFORE = wish("1", named("a100"), named("old"))
AFTER = wish(
    "2",
    named("a100", template={"spec": {"taints": [TAINT]}}),
    named("h100"),
    named("l4", weight=10),
    named("theirs", limits={"cpu": "10"}, template={"metadata": {"labels": {names.GPU_TYPE: "a100"}}}),
)


class Site:
    """Owner of a world, of what is remembered beside it, and of all effects so far; each process is a new Cycle."""

    def __init__(self) -> None:
        self.world = World(NOW)
        self.server = Kept(self._took_effect)
        self.wished = Wished(BEFORE)
        self.effects: Counter[str] = Counter()
        self.kill_after = -1
        self.world.put(named("theirs"), "kubectl")
        self.world.on_write = lambda ref: self._took_effect(ref.title)
        self.run()
        self._karpenter()
        self.effects.clear()
        self.wished = Wished(AFTER)

    def run(self, kill_after: int = -1) -> None:
        """One process, until there is nothing left to do, or until it is killed."""
        self.kill_after = kill_after
        memory = ConfigMapMemory(self.server, names.OWN_NAMESPACE)
        parts = LoopDependencies(self, self, memory, InProcess(), self, prune=("NodePool/old",))
        cycle, fence = Cycle(parts), Always()
        for _ in range(20):
            before = self._remembered()
            cycled = cycle.once(fence)
            assert not cycled.trouble, cycled.trouble
            if not cycled.outcomes and self._remembered() == before:
                return
        raise AssertionError("it never comes to rest")

    def end(self) -> Any:
        """How it stands, without what differs from one run to another."""
        keys = [(each.kind, each.metadata.name) for each in self.observe().node_pools]
        keys += [("Node", each.name) for each in self.observe().nodes]
        found = {key: copy.deepcopy(self.world.get(Ref(key[0], "", key[1])) or {}) for key in sorted(keys)}
        for each in found.values():
            for volatile in ("uid", "resourceVersion", "creationTimestamp", "generation"):
                each["metadata"].pop(volatile)
        return found, sorted((mark.kind, mark.name, mark.gpus, mark.goes) for mark in self._remembered().marks)

    def _karpenter(self) -> None:
        """What it would have made of the NodePools: nodes, and what it writes onto them."""
        for name in ("a100", "theirs"):
            body = self.world.get(Ref("NodePool", "", name)) or {}
            hashed = {names.POOL_HASH: template_hash(body["spec"]["template"]), names.POOL_HASH_VERSION: HASH_VERSION}
            self.world.edit(Ref("NodePool", "", name), {"metadata": {"annotations": hashed}}, "karpenter")
            for at in range(NODES):
                labels = {names.KARPENTER_POOL: name, names.INSTANCE_TYPE: MACHINE}
                status: Json = {"allocatable": {names.NVIDIA_GPU: "8", "pods": "110"}}
                self.world.put(_object("v1", "Node", f"{name}-{at}", labels=labels) | {"status": status})
                claim = _object("karpenter.sh/v1", "NodeClaim", f"{name}-{at}", labels=labels, annotations=hashed)
                launched = {"type": "Launched", "status": "True"}
                status = {"nodeName": f"{name}-{at}", "providerID": f"kwok://{name}-{at}", "conditions": [launched]}
                self.world.put(claim | {"status": status})

    def _remembered(self) -> Memory:
        return ConfigMapMemory(self.server, names.OWN_NAMESPACE).load().memory

    def _took_effect(self, what: str) -> None:
        self.effects[what] += 1
        if self.effects.total() == self.kill_after:
            raise Killed

    # The ports.

    def wish(self, cluster_uid: str) -> Wished:
        return self.wished

    def observe(self) -> Observed:
        return self.world.observe()

    def apply(self, decisions: Any, fence: Fence) -> Iterator[Outcome]:
        return self.world.apply(decisions, fence)

    def now(self) -> Instant:
        return self.world.now

    def wait(self, until: Instant | None) -> None:
        raise AssertionError("waiting is not supported")


def _object(version: str, kind: str, name: str, **metadata: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}


def undisturbed() -> Site:
    site = Site()
    site.run()
    return site


UNDISTURBED = undisturbed()


def test_an_undisturbed_run_has_effects_of_every_sort() -> None:
    assert {f"NodePool/{name}" for name in ("a100", "h100", "l4", "old", "theirs")} < UNDISTURBED.effects.keys()
    assert sum(what.startswith("Node/theirs") for what in UNDISTURBED.effects) == NODES
    assert any("configmaps" in what for what in UNDISTURBED.effects)
    assert {each.metadata.name for each in UNDISTURBED.observe().node_pools} == {"a100", "h100", "l4", "theirs"}
    assert len(UNDISTURBED.end()[1]) > NODES


@pytest.mark.parametrize("kill_after", range(1, UNDISTURBED.effects.total() + 1))
def test_a_kill_after_any_effect_changes_neither_the_end_nor_the_writes(kill_after: int) -> None:
    site = Site()
    with pytest.raises(Killed):
        site.run(kill_after)
    site.run()
    assert site.end() == UNDISTURBED.end()
    assert site.effects == UNDISTURBED.effects


def test_a_controller_that_is_killed_again_and_again_comes_to_the_same_end() -> None:
    site = Site()
    for effect in range(1, UNDISTURBED.effects.total() + 1):
        with pytest.raises(Killed):
            site.run(effect)
    site.run()
    assert site.end() == UNDISTURBED.end()
    assert site.effects == UNDISTURBED.effects
