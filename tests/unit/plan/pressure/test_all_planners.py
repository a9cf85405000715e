"""Pressure beside all other planners, in drawn fleets and in the fleets of drains: no planner raises, no invariant is
broken.
"""

from random import Random

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.pressure.bounds import node_bounds
from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.fleet.pressure.ledger_values import pressure_state
from reconciler.fleet.pressure.pods import counts, ledger_pod
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import later
from reconciler.model.plan.decision import Evict
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.pressure import ElasticPod
from reconciler.model.policy.scaling import Pressure, PressurePolicy
from reconciler.model.quantity import Percent, Quantity
from reconciler.plan.check import check
from reconciler.plan.planner import plan
from reconciler.plan.pressure.reasons import PLANNER
from tests.unit.plan.drain import stage as drain_stage
from tests.unit.plan.drawn_fleets import Drawn
from tests.unit.plan.scaling.stage import POLICY

BOUNDS = "cpu=1m..900,memory=1..900Gi"


def pressed(inputs: Inputs, seed: int) -> Inputs:
    """The fleet with a PressurePolicy: half of the pods are elastic, and half of these lack resources."""
    random = Random(seed)
    pods = tuple(_elastic(each) if random.random() < 0.5 else each for each in inputs.observed.pods)
    watermark = Percent.parse(random.choice(["0%", "1%", "10%", "50%"]))
    fields = Pressure(system=Quantity(0), watermark=watermark)
    spec = PressurePolicy(
        pool_names=["*"],
        resources={"cpu": fields, "memory": fields},
        compute_unit={"cpu": Quantity(1_000), "memory": Quantity(1_000)},
        migration=random.choice(["Auto", "Evict", "None"]),
    )
    ledgers = {each.name: NodeLedger(node_bounds(each, spec)) for each in inputs.observed.nodes if each.pool}
    loads = {each.metadata.uid: random.randint(0, 5_000) for each in pods if random.random() < 0.8}
    for each in pods:
        if counts(each) and each.node in ledgers:
            entry = ledger_pod(each, is_silent=random.random() < 0.1)
            if isinstance(entry, ElasticPod) and random.random() < 0.5:
                entry = msgspec.structs.replace(entry, lacks=dict.fromkeys(entry.has, 1_000))
            ledgers[each.node].put(entry)
    policy = Declared("PressurePolicy", "watch", spec, (("", POLICY),))
    return msgspec.structs.replace(
        inputs,
        desired=msgspec.structs.replace(inputs.desired, pressures=(policy,)),
        observed=msgspec.structs.replace(inputs.observed, pods=pods),
        pressure=pressure_state(ledgers.items(), loads.get),
    )


def _elastic(pod: Pod) -> Pod:
    annotations = msgspec.structs.replace(pod.metadata.annotations, elastic=BOUNDS)
    metadata = msgspec.structs.replace(pod.metadata, annotations=annotations)
    spec = msgspec.structs.replace(pod.spec, scheduler_name=names.GPU_SCHEDULER)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def evicted_in_three_plans(inputs: Inputs) -> int:
    """Evictions because of pressure."""
    evicted = 0
    for step in range(3):
        fleet = Fleet(inputs.observed)
        before = fleet.snapshot.fingerprint()
        made = plan(inputs, fleet)
        check(inputs, fleet, made)
        assert made.troubles == ()
        assert fleet.snapshot.fingerprint() == before
        evicted += sum(each.planner == PLANNER and isinstance(each.act, Evict) for each in made.decisions)
        inputs = msgspec.structs.replace(inputs, memory=made.memory, now=later(inputs.now, 400_000 * step))
    return evicted


@pytest.mark.parametrize("part", range(3))
def test_in_drawn_fleets(part: int) -> None:
    for seed in range(part * 30, part * 30 + 30):
        evicted_in_three_plans(pressed(Drawn(seed).inputs(), seed))


@pytest.mark.parametrize("part", range(4))
def test_in_the_fleets_of_drains(part: int) -> None:
    cases = [case for case in sorted(drain_stage.tables().items()) if "copies" not in str(case)][part::8]
    evicted = [
        evicted_in_three_plans(pressed(drain_stage.World(case).inputs, number))
        for number, (_, case) in enumerate(cases)
    ]
    assert sum(evicted) > 3
