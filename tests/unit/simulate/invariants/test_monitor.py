"""Each rule of safety is broken once by hand, and told; what is allowed breaks none."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.model.plan.memory import Memory
from reconciler.model.policy.guards import Ceiling, ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner, PressurePolicy
from reconciler.simulate.invariants.monitor import Watching
from reconciler.simulate.results.meter import RunMeter
from reconciler.simulate.stage import Engine, Stage
from reconciler.simulate.world import World
from tests import builders
from tests.unit.plan.manifests.stage import POLICY, pool

US = names.FIELD_MANAGER
NOW = Instant(1_795_000_000_000)
HOUR_MS = 3_600_000
DELETION = {"key": names.DELETION_TIME, "value": "1795013520", "effect": "PreferNoSchedule"}
DRAINING = {"key": names.DRAINING, "effect": "NoSchedule"}
NODES = 4
ANY_DRAIN = DrainPolicy(pool_names=["a100"])


class Site:
    """Owner of a stage with a pool of a few nodes, a pod on the first; an hour has gone by since they were made."""

    def __init__(
        self,
        mode: str = "Enforce",
        provisioner: NodeProvisioner | None = None,
        presence_ms: Callable[[], int] | None = None,
        drains: DrainPolicy = ANY_DRAIN,
        pressure: PressurePolicy | None = None,
    ) -> None:
        engine = Engine(1, Instant(NOW - HOUR_MS))
        self.world = World(engine.now)
        self.stage = Stage(engine, self.world)
        guard = ChangeGuard(pool_names=["*"], per_hour=Ceiling(max_removed_nodes=2, max_disrupted_gpus=8))
        scaled = [Declared("NodeProvisioner", "a100", each, (("", POLICY),)) for each in (provisioner,) if each]
        desired = Desired(
            "1",
            "base",
            (pool("a100", {"mode": mode}),),
            provisioners=tuple(scaled),
            guards=(Declared("ChangeGuard", "fleet", guard, (("", POLICY),)),),
            drains=(Declared("DrainPolicy", "drains", drains, (("", POLICY),)),),
            pressures=tuple(Declared("PressurePolicy", "watch", each, (("", POLICY),)) for each in (pressure,) if each),
        )
        self.memory = Memory()
        for number in range(NODES):
            self.world.put(node(f"n{number}"))
        meter = RunMeter(self.stage, desired, ())
        self.watching = Watching(meter.where, lambda: desired, presence_ms, lambda: self.memory)
        self.watching.start(self.stage)
        self.world.put(pod("busy", "n0"))
        engine.run(NOW)

    @property
    def rules(self) -> set[str]:
        return {each.rule for each in self.watching.broken}

    def edit(self, name: str, patch: Any, manager: str = US, kind: str = "Node") -> None:
        self.world.edit(Ref(kind, "" if kind != "Pod" else "default", name), patch, manager)

    def taint(self, name: str, *taints: Any) -> None:
        self.edit(name, {"spec": {"taints": list(taints)}})


def node(name: str) -> Any:
    labels = {names.KARPENTER_POOL: "a100", names.INSTANCE_TYPE: "p4d.24xlarge"}
    ready = (Condition("Ready", "True"),)
    return builders.manifest(builders.node(name, gpus=8, has={"pods": "110"}, labels=labels, conditions=ready))


def pod(name: str, node_name: str, gpus: int = 8, annotations: dict[str, str] | None = None) -> Any:
    said = msgspec.convert(annotations or {}, Annotations)
    built = builders.pod(name, gpus=gpus, namespace="default", annotations=said, node_name=node_name)
    return builders.manifest(built)


def frozen(site: Site) -> None:
    site.edit("n1", {"metadata": {"annotations": {names.FROZEN_UNTIL: "2030-01-01T00:00:00Z"}}}, "kubectl")
    site.stage.engine.run(Instant(site.stage.now + 120_000))
    site.taint("n1", DELETION)


def cordoned(site: Site) -> None:
    site.edit("n1", {"spec": {"unschedulable": True}}, "kubectl")
    site.taint("n1", DELETION)


def protected(site: Site) -> None:
    site.world.put(pod("kept", "n1", annotations={names.DO_NOT_DISRUPT: "true", names.SAFE_TO_EVICT: "true"}))
    site.taint("n1", DRAINING)
    site.world.evict(Ref("Pod", "default", "kept"), US)


def three_gone(site: Site) -> None:
    for number in (1, 2, 3):
        site.taint(f"n{number}", DELETION)


def claim_made(site: Site) -> None:
    site.world.put({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}}, US)


BROKEN: dict[str, Callable[[Site], None]] = {
    "reconciler deletes no node with a workload pod": lambda site: site.world.delete(Ref("Node", "", "n0"), US),
    "reconciler neither creates nor deletes NodeClaims": claim_made,
    "reconciler respects annotations against disruption of pods": protected,
    "nodes that another component is removing are not touched": cordoned,
    "no node has the taints of two planners": lambda site: site.taint("n1", DELETION, DRAINING),
    "frozen objects are not changed": frozen,
    "no guard's ceiling is passed": three_gone,
    "no node has pods for more GPUs than it has": lambda site: (site.world.put(pod("more", "n0", 1)), None)[1],
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_told(rule: str) -> None:
    site = Site()
    BROKEN[rule](site)
    assert site.rules == {rule}


def test_a_pod_that_runs_to_completion_is_not_evicted_by_us() -> None:
    site = Site()
    site.world.put(pod("train", "n1", annotations={names.SAFE_TO_EVICT: "on-completion"}))
    site.taint("n1", DRAINING)
    site.world.evict(Ref("Pod", "default", "train"), US)
    assert "reconciler respects annotations against disruption of pods" in site.rules


def test_a_node_with_nothing_but_a_pod_that_counts_as_one_of_a_daemon_set_may_be_deleted() -> None:
    site = Site()
    site.world.put(pod("agent", "n1", annotations={names.DAEMONSET_POD: "true"}))
    site.taint("n1", DELETION)
    site.world.delete(Ref("Node", "", "n1"), US)
    assert site.rules == set()


def test_a_pool_that_only_observes_is_not_written_to() -> None:
    site = Site("Observe")
    site.taint("n1", DELETION)
    assert site.rules == {"pools in Observe mode are not written"}


def test_what_is_allowed_breaks_nothing() -> None:
    site = Site()
    site.taint("n1", DELETION)
    site.world.delete(Ref("Node", "", "n2"), US)
    site.world.delete(Ref("Node", "", "n0"), "karpenter")
    site.taint("n1")
    assert site.watching.broken == []


def test_what_was_marked_before_it_went_counts_from_then_on() -> None:
    """So soon after its pod had gone that it was not counted when it was marked."""
    site = Site()
    site.edit("n0", {"metadata": {"finalizers": ["karpenter.sh/termination"]}}, "karpenter")
    site.world.delete(Ref("Pod", "default", "busy"), grace_seconds=0)
    site.taint("n0", DELETION)
    marked = site.stage.now
    site.stage.engine.run(Instant(marked + 120_000))
    site.world.delete(Ref("Node", "", "n0"), US)
    site.taint("n2", DELETION)
    site.stage.engine.run(Instant(marked + HOUR_MS))
    site.taint("n3", DELETION)
    assert site.watching.broken == []
    site.taint("n1", DELETION)
    assert site.rules == {"no guard's ceiling is passed"}


def test_an_hour_later_a_guard_has_room_again() -> None:
    site = Site()
    for number in (1, 2):
        site.taint(f"n{number}", DELETION)
    site.stage.engine.run(Instant(site.stage.now + HOUR_MS))
    site.taint("n3", DELETION)
    assert site.watching.broken == []
