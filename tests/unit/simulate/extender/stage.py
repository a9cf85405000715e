"""Plays of some minutes whose pods have GpuClaims, and what the cluster looks like at the end."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.fleet.devices.device_lease import read_allocation, read_device_lease
from reconciler.loop.cycle import InProcess
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.policy.gpu import ClaimedDevices
from reconciler.model.quantity import Duration
from reconciler.ports import PlanService
from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.play import Play, Revised
from reconciler.simulate.runner.run import RunOptions, run
from reconciler.simulate.scenario.cluster import (
    Bursts,
    Constant,
    InitialCluster,
    NodeBoard,
    NodeSet,
    ScenarioClaim,
    ScenarioWorkload,
)
from reconciler.simulate.scenario.spec import ScenarioFault
from tests.lab.places import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "taint-edit" / "scenario.yaml"
MINUTE = 60_000
SOLD_OUT = ScenarioFault(fault="StockOut", at=Duration(0))  # no node can be bought


def claim(name: str, count: int, **devices: Any) -> ScenarioClaim:
    return ScenarioClaim(name=name, devices=ClaimedDevices(count=count, **devices))


def kept(name: str, pods: int, begins: int = 0, **more: Any) -> ScenarioWorkload:
    """Pods of the claim with the same name, from that second on."""
    return ScenarioWorkload(
        name=name, claim=name, constant=Constant(pods=pods), begins=Duration(begins * 1_000), **more
    )


def jobs(name: str, number: int, seconds: int, every: int = 3_600, **more: Any) -> ScenarioWorkload:
    """Jobs of the claim with the same name, again and again."""
    bursts = Bursts(jobs=number, every=Duration(every * 1_000))
    return ScenarioWorkload(name=name, claim=name, bursts=bursts, runs_for=Duration(seconds * 1_000), **more)


# Claims of all sizes, whose pods come and go within minutes.
MIXED_CLAIMS = [claim("one", 1), claim("two", 2, policy="contiguous"), claim("four", 4), claim("whole", 8)]
MIXED_WORKLOADS = [
    jobs("one", 5, seconds=70, every=120),
    jobs("two", 3, seconds=50, every=90),
    kept("four", 2, begins=60, ends=Duration(300_000)),
    kept("whole", 1, begins=200),
]


def play(
    claims: Sequence[ScenarioClaim],
    workloads: Sequence[ScenarioWorkload],
    nodes: int = 1,
    minutes: int = 10,
    faults: Sequence[ScenarioFault] = (),
    islands: Sequence[int] = (4, 4),
    allocation: str = "agent",
    scheduler: str = "external",
    **cluster: Any,
) -> Play:
    """One pool of nodes with two islands of four GPUs."""
    found = prepared(SimulationRequest(EXAMPLE)).plays[0]
    initial = InitialCluster(
        nodes=[NodeSet(pool="a100", count=nodes)],
        claims=list(claims),
        boards=[NodeBoard(pool="a100", islands=list(islands))] if islands else [],
        **cluster,
    )
    scenario = msgspec.structs.replace(
        found.scenario,
        duration=Duration(minutes * MINUTE),
        policies=found.scenario.policies[:1],
        cluster=initial,
        workloads=list(workloads),
        faults=list(faults),
        expect=[],
        scheduler=scheduler,
    )
    pools = tuple(
        msgspec.structs.replace(
            each, spec=msgspec.structs.replace(each.spec, allocation=allocation, mode="Enforce", limits={})
        )
        for each in found.first.pools
    )
    desired = msgspec.structs.replace(found.first, pools=pools)
    return msgspec.structs.replace(found, scenario=scenario, revisions=(Revised(0, desired),))


class Played:
    """The result of a play, and the cluster as the controller saw it last."""

    def __init__(self, played: Play, brain: Callable[[], PlanService] = InProcess) -> None:
        self.observed = Observed()
        self.codes: set[str] = set()
        self.result: Simulated = run(played, RunOptions(publishers=(self,), brain=brain))

    def publish(self, cycled: CycleResult) -> None:
        assert not cycled.trouble, cycled.trouble
        if cycled.inputs is not None:
            self.observed = cycled.inputs.observed
        if cycled.plan is not None:
            self.codes |= {each.reason.code for each in cycled.plan.decisions}

    @property
    def pods(self) -> dict[str, Pod]:
        return {each.name: each for each in self.observed.pods}

    @property
    def bound(self) -> dict[str, tuple[int, ...]]:
        """Ids of the GPUs of each bound pod with a claim, by the pod's name."""
        return {
            name: read_allocation(pod.metadata.annotations.allocated, pod.node)
            for name, pod in self.pods.items()
            if pod.node and not pod.is_finished and pod.metadata.annotations.claim
        }

    @property
    def lent(self) -> dict[str, tuple[int, ...]]:
        """Ids of the GPUs with a Lease, by the name of the holding pod; by uid for a pod that is gone."""
        names = {each.metadata.uid: each.name for each in self.observed.pods}
        found: dict[str, list[int]] = {}
        for each in self.observed.leases:
            if (device := read_device_lease(each)) is not None:
                found.setdefault(names.get(device.holder, device.holder), []).append(device.id)
        return {name: tuple(sorted(ids)) for name, ids in found.items()}
