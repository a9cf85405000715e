"""A gang on an imagined cluster: wherever the process is killed while it leaves, all of it leaves, and once."""

from contextlib import suppress
from typing import Any

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.decision import Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import check
from reconciler.plan.drain.planner import drain
from reconciler.plan.planner import plan
from reconciler.simulate.world import World
from tests import builders
from tests.unit.plan.drain import stage as drain_stage
from tests.unit.plan.scaling.stage import NOW, after

Object = dict[str, Any]
GANG = 3
LONG_AGO = timestamp(after(-36_000))


class Killed(Exception):
    """The process, between two writes."""


class Standing:
    def holds(self) -> bool:
        return True


class Story:
    """A gang of three on three nodes, the first of which is emptied; with a budget that allows so many."""

    def __init__(self, allowed: int = GANG + 1) -> None:
        self.world, self.memory = World(), Memory()
        self.world.now = NOW
        self.desired = drain_stage.World({"nodes": {"n0": None}}).inputs.desired
        for at in range(GANG):
            self.world.put(node(f"n{at}", drained=not at))
            self.world.put(pod(f"web-{at}", f"n{at}"))
            if at:
                self.world.put(pod(f"job-{at}", f"n{at}", gpus=2 * at))
        self.world.put(controller("web", GANG))
        self.world.put(controller("job", GANG - 1))
        spec = {"gangRef": "llama", "devices": {"count": 2}}
        self.world.put(of("GpuClaim", "one", spec=spec, api="gpu.scheduling/v1"))
        self.world.put(budget(allowed))

    def cycle(self, dies_after: int = 0) -> Plan:
        """One, killed after so many writes."""
        self.world.now = Instant(self.world.now + 15_000)
        observed = self.world.observe()
        inputs = Inputs(self.desired, observed, self.world.now, self.memory)
        made = plan(inputs, Fleet(observed), (drain,))
        check(inputs, Fleet(observed), made)
        self.memory = made.memory
        left = [dies_after]

        def count(_: Ref) -> None:
            left[0] -= 1
            if not left[0]:
                raise Killed

        self.world.on_write = count if dies_after else lambda _: None
        with suppress(Killed):
            list(self.world.apply(made.decisions, Standing()))
        return made

    def going(self) -> set[str]:
        return {
            each["metadata"]["name"]
            for each in self.world.of("Pod")
            if is_going(each) and each["metadata"]["name"].startswith("web")
        }


def of(kind: str, name: str, *, api: str = "v1", namespace: str = "team", **more: Any) -> Object:
    metadata = {"name": name, "creationTimestamp": LONG_AGO, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def node(name: str, *, drained: bool) -> Object:
    taint = NodeTaint(names.DRAINING, "NoSchedule", str(after(-30) // 1_000))
    built = builders.node(
        name,
        gpus=8,
        has={"cpu": "96", "memory": "100Gi", "pods": "110"},
        creation_timestamp=LONG_AGO,
        labels={names.KARPENTER_POOL: "a100", names.HOSTNAME: name},
        taints=(taint,) if drained else (),
        conditions=(Condition("Ready", "True", last_transition_time=LONG_AGO),),
    )
    return builders.manifest(built)


def pod(name: str, on: str, gpus: int = 2) -> Object:
    app = name.partition("-")[0]
    built = builders.pod(
        name,
        gpus=gpus or None,
        asks={"cpu": "1"},
        namespace="team",
        creation_timestamp=LONG_AGO,
        labels={"app": app},
        annotations=Annotations(claim="one" if app == "web" else ""),
        owner_references=builders.controlled_by("ReplicaSet", app),
        node_name=on,
        start_time=LONG_AGO,
        conditions=(Condition("Ready", "True"),),
    )
    return builders.manifest(built)


def controller(app: str, replicas: int) -> Object:
    made = of("ReplicaSet", app, api="apps/v1", spec={"replicas": replicas})
    made["metadata"]["uid"] = f"uid-{app}"
    return made


def budget(allowed: int) -> Object:
    spec = {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1, "currentHealthy": GANG, "desiredHealthy": 0}
    return of("PodDisruptionBudget", "web", api="policy/v1", spec=spec, status=status)


@pytest.mark.parametrize("writes", range(7))
def test_wherever_it_is_killed_all_of_the_gang_leaves_with_the_next_plan(writes: int) -> None:
    """Three evictions, with a write to the budget before each, which is lost where the process is killed just then."""
    story = Story()
    story.cycle(writes)
    begun = story.going()
    assert len(begun) == (writes // 2 if writes else GANG)
    story.cycle()
    assert story.going() == {"web-0", "web-1", "web-2"}
    assert not {"job-1", "job-2"} & {each["metadata"]["name"] for each in story.world.of("Pod") if is_going(each)}


def is_going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def test_pods_that_come_after_it_are_not_asked_again() -> None:
    story = Story()
    story.cycle(2)
    for at in range(GANG):
        story.cycle()
        story.world.remove(Ref("Pod", "team", f"web-{at}"))
        story.world.put(pod(f"web-{at + GANG}", f"n{1 + at % 2}"))
    story.cycle()
    assert story.going() == set()


def test_none_of_it_is_asked_while_its_budget_does_not_allow_all() -> None:
    story = Story(allowed=2)
    codes = [[each.reason.code for each in story.cycle().decisions] for _ in range(3)]
    assert story.going() == set()
    assert codes == [["GangStays"]] * 3
