"""Planners with a bug in what they do about GPUs of pods with a GpuClaim, and plays in which the bugs show."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Desired
from reconciler.model.plan.decision import Action, Annotate, Bind, Decision, Delete, Ref, pod_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import ClaimedDevices
from reconciler.model.quantity import Duration
from reconciler.simulate.scenario.cluster import (
    Bursts,
    Constant,
    InitialCluster,
    NodeBoard,
    NodeSet,
    ScenarioClaim,
    ScenarioWorkload,
)
from reconciler.simulate.scenario.spec import Scenario, ScenarioFault

TWICE, WITHOUT, KEPT, IDLE = (
    "no GPU is lent to two pods",
    "each GPU of a bound pod with a GpuClaim has a Lease",
    "Leases of GPUs are released within five minutes after their pods",
    "no GPU is idle for a minute while a pod with a GpuClaim waits and fits",
)


def claiming(inputs: Inputs) -> Iterator[Pod]:
    """Unfinished pods with a claim."""
    for pod in inputs.observed.pods:
        if pod.metadata.annotations.claim and not pod.is_finished and not pod.metadata.leaving:
            yield pod


def lends_twice(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """A pod that waits gets the GPUs of another."""
    bound = [pod for pod in claiming(inputs) if pod.node and pod.metadata.annotations.allocated]
    for pod in claiming(inputs):
        if bound and not pod.node:
            texts = ((names.ALLOCATED, bound[0].metadata.annotations.allocated),)
            yield pod_ref(pod), Bind(node=bound[0].node, leases=(), annotations=texts)


def takes_a_lease(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """Of a pod that runs."""
    running = {pod.metadata.uid for pod in claiming(inputs) if pod.node}
    for lease in inputs.observed.leases:
        if lease.spec.holder_identity in running:
            yield Ref("Lease", lease.metadata.namespace, lease.metadata.name, lease.metadata.uid), Delete()


def keeps_leases(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """The deletions of the planner are left out."""
    yield from ()


def wakes_nobody(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """The annotations of the planner are left out."""
    yield from ()


def deletes_a_lease(decision: Decision) -> bool:
    return decision.subject.kind == "Lease" and isinstance(decision.act, Delete)


def wakes(decision: Decision) -> bool:
    return decision.subject.kind == "Node" and isinstance(decision.act, Annotate)


BUGS: dict[str, Callable[[Inputs], Iterator[tuple[Ref, Action]]]] = {
    TWICE: lends_twice,
    WITHOUT: takes_a_lease,
    KEPT: keeps_leases,
    IDLE: wakes_nobody,
}
LEFT_OUT: Mapping[Callable[[Inputs], Iterator[tuple[Ref, Action]]], Callable[[Decision], bool]] = {
    keeps_leases: deletes_a_lease,
    wakes_nobody: wakes,
}


def scenario_for(scenario: Scenario, gate: str) -> Scenario:
    """One node whose pods of one claim leave after two minutes, while pods of another claim wait. Gated pods come all
    the time, and much else is there that matters to nobody."""
    whole = ClaimedDevices(count=8, policy="requireContiguous")
    minute = Duration(60_000)
    return msgspec.structs.replace(
        scenario,
        cluster=InitialCluster(
            nodes=[NodeSet(pool="a100", count=1)],
            claims=[ScenarioClaim(name=name, devices=whole) for name in ("first", "second")],
            boards=[NodeBoard(pool="a100", islands=[8])],
        ),
        workloads=[
            ScenarioWorkload(name="first", claim="first", constant=Constant(pods=1), ends=Duration(120_000)),
            ScenarioWorkload(name="second", claim="second", constant=Constant(pods=1), begins=minute),
            ScenarioWorkload(
                name="gated", gates=[gate], bursts=Bursts(jobs=1, every=Duration(20_000)), runs_for=minute
            ),
            *[ScenarioWorkload(name=f"nothing-{number}", constant=Constant(pods=0)) for number in range(9)],
        ],
        faults=[ScenarioFault(fault="StockOut", at=Duration(0))],
    )


def with_agents(desired: Desired) -> Desired:
    """Pools whose GPUs the node agent gives out."""
    pools = [
        msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, allocation="agent"))
        for each in desired.pools
    ]
    return msgspec.structs.replace(desired, pools=tuple(pools))
