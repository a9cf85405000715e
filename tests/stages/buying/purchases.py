"""Small scenarios for Karpenter, and what becomes of them: on an imagined cluster, and on the lab.

Nobody makes pods again that were evicted, so of several nodes that are replaced one after the other some may find
their pods a place on the first replacement, or not, as it happens: a scenario replaces one busy node at most.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.simulate.actors.builtin_controllers import Collector
from reconciler.simulate.actors.karpenter.cloud import MarketOffering
from reconciler.simulate.actors.karpenter.karpenter import Karpenter
from reconciler.simulate.actors.karpenter.machines import Timing
from reconciler.simulate.actors.kubelets import Kubelets
from reconciler.simulate.actors.scheduler import Scheduler
from reconciler.simulate.stage import Engine, Stage
from reconciler.simulate.world import World
from tests.lab import capacity
from tests.lab.api import Manifest
from tests.lab.capacity import NodePool
from tests.lab.fleet import Pod
from tests.lab.lab import Lab

START = Instant(1_795_000_000_000)
_PHASE_MS = 400_000
_WITHIN_SECONDS = 90
# Whatever Karpenter would still do, it has done by then: a round of its looks is 10 s. Where each second counts, less.
STILL_SECONDS, QUICKLY_STILL_SECONDS = 12, 2.5
# In which a node that drifts would have been replaced: 10 s in which pods may come, and a round of as much.
_UNTOUCHED_SECONDS = 25
_PRIORITIES = {"system-cluster-critical": 2_000_000_000}

# KWOK keeps so much of each machine for itself.
_RESERVED = {"cpu": "100m", "memory": "10Mi"}
_QUICK = Timing(0, 500, 500, 500, 500, 500)

Machines = Counter[tuple[str, str, str]]  # NodePool, instance type, capacity type


@dataclass(frozen=True)
class Scenario:
    """NodePools and pods; then, once all is quiet, pods that go, patches of NodePools once these are gone, and further
    pods: a node whose pod still ends counts as busy, and would be replaced."""

    name: str
    pools: Sequence[NodePool]
    pods: Sequence[Pod]
    patches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    later: Sequence[Pod] = ()
    gone: Sequence[str] = ()

    @property
    def phases(self) -> int:
        return 2 if self.patches or self.later or self.gone else 1


def imagined(scenario: Scenario) -> list[Machines]:
    """What there is at the end of each phase, on an imagined cluster."""
    engine = Engine(1, START)
    world = World(engine.now)
    stage = Stage(engine, world)
    for pool in scenario.pools:
        world.put(pool.manifest())
    for pod in scenario.pods:
        world.put(_pending(pod))
    for actor in (Scheduler(), Kubelets(), Collector(), Karpenter(market(), _QUICK, _RESERVED)):
        actor.start(stage)
    engine.run(Instant(engine.now + _PHASE_MS))
    found = [_bought(world.of("NodeClaim"))]
    if scenario.phases > 1:
        for gone in scenario.gone:
            world.delete(Ref("Pod", "default", gone), grace_seconds=0)
        for name, patch in scenario.patches.items():
            world.edit(Ref("NodePool", "", name), dict(patch))
        for each in scenario.later:
            world.put(_pending(each))
        engine.run(Instant(engine.now + _PHASE_MS))
        found.append(_bought(world.of("NodeClaim")))
    return found


def real(
    scenario: Scenario, lab: Lab, expected: Sequence[Machines], still_seconds: float = QUICKLY_STILL_SECONDS
) -> list[Machines]:
    """The same on the lab: once it is as expected and stays so, or has had time enough."""
    admin = lab.admin
    for pool in scenario.pools:
        admin.apply(pool.manifest())
    for pod in scenario.pods:
        admin.create(pod.manifest())
    found = [_settled(lab, expected[0], still_seconds)]
    if scenario.phases > 1:
        for name in scenario.gone:
            admin.delete("pods", name, "default")
            admin.wait_for("pods", name, lambda found: found is None, "default")
        for name, patch in scenario.patches.items():
            admin.merge(admin.path("nodepools", name), dict(patch))
        for each in scenario.later:
            admin.create(each.manifest())
        is_touched = expected[1] != expected[0]
        found.append(_settled(lab, expected[1], still_seconds if is_touched else _UNTOUCHED_SECONDS))
    return found


def market() -> tuple[MarketOffering, ...]:
    """All that the lab's Karpenter can buy."""
    return tuple(
        MarketOffering(each.name, zone, kind, round(price * 1_000_000), tuple(each.resources().items()))
        for each in capacity.INSTANCE_TYPES
        for kind, price in sorted(each.prices.items())
        if kind != "reserved"
        for zone in each.zones
    )


def _settled(lab: Lab, expected: Machines, still_seconds: float) -> Machines:
    until = time.monotonic() + _WITHIN_SECONDS
    same_since = time.monotonic()
    while time.monotonic() < until:
        found = _bought(lab.admin.list("nodeclaims"))
        if found != expected:
            same_since = time.monotonic()
        elif time.monotonic() - same_since > still_seconds:
            return found
        time.sleep(0.25)
    return _bought(lab.admin.list("nodeclaims"))


def _bought(claims: Any) -> Machines:
    """Those that stay."""
    return Counter(
        (labels["karpenter.sh/nodepool"], labels.get("node.kubernetes.io/instance-type", ""), labels.get(_KIND, ""))
        for labels in (_labels(each) for each in claims if not each["metadata"].get("deletionTimestamp"))
    )


_KIND = "karpenter.sh/capacity-type"


def _labels(body: Manifest) -> Mapping[str, str]:
    found: Mapping[str, str] = body["metadata"].get("labels") or {}
    return found


def _pending(pod: Pod) -> Manifest:
    """As it stands once it was admitted."""
    body = pod.manifest()
    priority = _PRIORITIES.get(body["spec"].get("priorityClassName", ""), 0)
    return {**body, "spec": {**body["spec"], "priority": priority}, "status": {"phase": "Pending"}}
