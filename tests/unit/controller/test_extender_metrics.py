"""What is measured of the scheduler's requests: phases of an allocation, and failures by reason."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from reconciler.controller.extender import SchedulerExtender
from reconciler.kube.binding import BindResult, LivePod, PodBinder
from reconciler.model.cluster.metadata import Annotations, Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Bind, Ref
from reconciler.ports import Unavailable
from reconciler.protocol.desk import Desk
from reconciler.protocol.extender import AskingPod, BindRequest, FilterRequest
from reconciler.protocol.preconditions import WriteResult
from reconciler.serve.claim_metrics import ClaimMetrics
from tests import builders
from tests.unit.plan.gpu.claim_stage import ClaimWorld

CASE = {
    "nodes": {"a": {"board": "4xA600"}},
    "claims": {"one": 2, "six": 6},
    "pods": {"train": {}, "x": {"claim": "six"}},
}


class Binder(PodBinder):
    """Binds in memory."""

    def __init__(self, pods: dict[str, Pod], written: WriteResult | None) -> None:
        self._pods, self._written = pods, written

    def read(self, ref: Ref) -> LivePod | None:
        if self._written is None:
            raise Unavailable("no answer")
        pod = self._pods.get(ref.name)
        return LivePod(pod, {}) if pod is not None else None

    def bind(self, pod: Ref, bind: Bind, read: LivePod, node: Node | None = None) -> BindResult:
        assert self._written is not None
        return BindResult(self._written, 0.2, 0.4)


class Asked:
    """An extender with a registry of its own."""

    def __init__(self, written: WriteResult | None = None, is_read: bool = True) -> None:
        world, desk = ClaimWorld(CASE), Desk()
        desk.is_read = is_read
        desk.set_pools(world.inputs.desired.pools)
        for node in world.inputs.observed.nodes:
            desk.put_node(node)
        for policy in world.inputs.observed.policies:
            desk.put_policy(policy)
        self.registry = CollectorRegistry()
        self.pods = {each.name: each for each in world.inputs.observed.pods}
        self.extender = SchedulerExtender(desk, Binder(self.pods, written), ClaimMetrics(self.registry))

    def bind(self, name: str) -> None:
        asyncio.run(self.extender.bind(BindRequest(name, "team", f"uid-{name}", "a")))

    def failures(self) -> dict[str, float]:
        return {
            each.labels["reason"]: each.value
            for family in self.registry.collect()
            for each in family.samples
            if each.name == "reconciler_claim_failures_total"
        }

    def seconds(self, phase: str, part: str = "sum") -> float | None:
        return self.registry.get_sample_value(f"reconciler_claim_allocation_seconds_{part}", {"phase": phase})


def test_the_phases_of_a_binding_are_measured() -> None:
    asked = Asked(WriteResult("done"))
    asked.bind("train")
    assert (asked.seconds("leases"), asked.seconds("binding")) == (0.2, 0.4)
    assert asked.seconds("queue", "count") == asked.seconds("reserve", "count") == 1
    assert not asked.failures()


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (WriteResult("stale"), "WriteStale"),
        (WriteResult("refused"), "WriteRefused"),
        (WriteResult("unknown"), "WriteUnknown"),
        (None, "Unavailable"),
    ],
)
def test_a_write_that_fails_counts_by_its_result_and_takes_no_time(written: WriteResult | None, reason: str) -> None:
    asked = Asked(written)
    asked.bind("train")
    assert asked.failures() == {reason: 1.0}
    assert asked.seconds("binding", "count") == 0


def test_a_pod_that_is_gone_or_bound_elsewhere_counts() -> None:
    asked = Asked(WriteResult("done"))
    asked.bind("nobody")
    asked.pods["train"] = builders.pod("train", namespace="team", node_name="b")
    asked.bind("train")
    assert asked.failures() == {"PodGone": 1.0, "BoundElsewhere": 1.0}


def test_a_node_that_can_no_longer_serve_counts_by_the_obstacle() -> None:
    asked = Asked(WriteResult("done"))
    asked.bind("x")
    assert asked.failures() == {"TooFewFreeGpus": 1.0}


def test_a_filter_without_a_node_counts_by_the_most_frequent_obstacle() -> None:
    asked = Asked()
    _filter(asked, "six", ["a", "gone"])
    _filter(asked, "six", ["gone", "gone too"])
    _filter(asked, "lost", ["a"])
    _filter(asked, "six", [])
    _filter(asked, "one", ["a"])
    assert asked.failures() == {"NodeAbsent": 2.0, "GpuClaimUnusable": 1.0, "NoNodes": 1.0}


def test_what_is_not_read_yet_counts_too() -> None:
    asked = Asked(WriteResult("done"), is_read=False)
    _filter(asked, "one", ["a"])
    asked.bind("train")
    assert asked.failures() == {"NotReady": 2.0}


def _filter(asked: Asked, claim: str, nodes: list[str]) -> None:
    pod = AskingPod(Metadata("p", "team", annotations=Annotations(claim=claim)))
    asked.extender.filter(FilterRequest(pod, nodes))
