"""The money of a plan compares the same nodes before and after: consequences add up to the difference of two bills, of
the fleet as it is and of the fleets that two plans lead to, each billed by itself here."""

from collections import Counter

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.capacity import CapacityReport
from reconciler.model.plan.consequence import LEAVES
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.blame import blame, pool_of
from reconciler.plan.impact.impact import with_impact
from reconciler.plan.impact.pricing import Priced, machines_of
from reconciler.plan.planner import plan
from reconciler.plan.sums import MachineType, Tariff, successor
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document
from tests.unit.plan.drawn_fleets import Drawn
from tests.unit.plan.impact.drawn_edits import Edits, priced
from tests.unit.report.plans.samples import SETTING

replace = msgspec.structs.replace
SEEDS = range(60)


def scene_of(inputs: Inputs, edits: Edits) -> PlanningResult:
    """A plan by all planners, with what Karpenter does by edits that are drawn."""
    fleet = Fleet(inputs.observed)
    made = plan(inputs, fleet)
    return PlanningResult(inputs, fleet, replace(made, consequences=edits.fates(inputs.observed, inputs.desired)))


def drawn(seed: int, *, is_priced: bool) -> tuple[PlanningResult, PlanningResult]:
    """Of a pull request, and of its base."""
    inputs = Drawn(seed).inputs()
    inputs = priced(inputs) if is_priced else inputs
    head = Edits(seed).edited(inputs, is_priced=is_priced)
    return scene_of(head, Edits(seed + 1_000)), scene_of(inputs, Edits(seed + 2_000))


def tariff_of(pool: str, scene: PlanningResult, base: PlanningResult | None) -> Tariff | None:
    own, before = scene.inputs.desired.pool(pool), base.inputs.desired.pool(pool) if base else None
    first = own or before
    return Tariff(first.spec, before.spec if before else None) if first else None


def bill_after(scene: PlanningResult, pool: str, spec: GpuPool | None, tariff: Tariff | None) -> int:
    """Of the fleet that a plan leads to, node by node."""
    machines: dict[str, MachineType] = dict(machines_of(scene, pool))
    for each in scene.plan.consequences:
        for name, share in zip(each.nodes, each.shares, strict=True):
            if pool_of(each) != pool:
                continue
            if each.fate in LEAVES:
                machines.pop(name, None)
            elif each.fate == "bought" and each.order is not None and not share.is_paid_for:
                machines[name] = MachineType(each.order.instance_type, each.order.capacity_type)
            elif each.fate == "replaced" and name in machines and spec is not None and tariff is not None:
                after = successor(spec, machines[name])
                machines[name] = after if tariff.has(after) and tariff.has(machines[name]) else machines[name]
    return tariff.bill(Counter(machines.values())).micro_dollars_per_hour if tariff else 0


def sums(told: Priced) -> dict[str, int]:
    blamed = blame(told.scene.plan, told.base.plan if told.base else None)
    sides = {"standing": blamed.without, "change": blamed.causes, "spared": blamed.spared}
    return {
        side: sum(each.micro_dollars_per_hour for each in found if each.fate != "scheduled")
        for side, found in sides.items()
    }


@pytest.mark.parametrize("is_priced", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_consequences_add_up_to_the_difference_of_the_bills(seed: int, is_priced: bool) -> None:
    head, base = drawn(seed, is_priced=is_priced)
    told = with_impact(head, base)
    assert told.base is not None
    found = sums(told)
    without, with_change = (
        sum(getattr(each, side) for each in told.bills.values()) for side in ("without", "with_change")
    )
    assert with_change - without == found["change"] - found["spared"]
    for pool, bills in told.bills.items() if is_priced else ():
        tariff = tariff_of(pool, head, base)
        own, before = head.inputs.desired.pool(pool), base.inputs.desired.pool(pool)
        assert bills.without == bill_after(told.base, pool, _spec(before or own), tariff)
        assert bills.with_change == bill_after(told.scene, pool, _spec(own or before), tariff)


def _spec(declared: Declared[GpuPool] | None) -> GpuPool | None:
    return declared.spec if declared else None


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_base_they_do_so_too(seed: int) -> None:
    head, _ = drawn(seed, is_priced=True)
    told = with_impact(head)
    found = sums(told)
    amounts = [sum(getattr(each, side) for each in told.bills.values()) for side in ("now", "without", "with_change")]
    assert [amounts[1] - amounts[0], amounts[2] - amounts[1]] == [found["standing"], found["change"]]
    for pool, bills in told.bills.items():
        assert bills.repriced == 0
        own = head.inputs.desired.pool(pool)
        assert bills.with_change == bill_after(told.scene, pool, _spec(own), tariff_of(pool, head, None))


@pytest.mark.parametrize("seed", SEEDS)
def test_where_all_prices_are_known_nothing_is_unpriced(seed: int) -> None:
    head, base = drawn(seed, is_priced=True)
    told = with_impact(head, base)
    known = {pool.name for pool in head.inputs.desired.pools}
    unknown = [
        each.order
        for each in told.scene.plan.consequences
        if each.unpriced and each.pool in known and each.order is not None and each.order.instance_type
    ]
    assert unknown == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_of_nothing_does_nothing_and_costs_nothing(seed: int) -> None:
    head, _ = drawn(seed, is_priced=False)
    payload = plan_document(planned_of(replace(SETTING, now=head.inputs.now), head, Compared(head, ()))).payload
    assert {each["cause"] for each in payload["consequences"]} <= {"standing"}
    impact = payload["impact"]
    for each in ("nodes", "gpus", "micro_dollars_per_hour"):
        assert impact[each]["after"] == impact[each]["before"]
    assert impact["repriced_micro_dollars_per_hour"] == 0
    assert (impact["nodes_bought"], impact["pods_evicted"]) == (0, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_edit_of_prices_and_commitments_alone_moves_no_money(seed: int) -> None:
    inputs = priced(Drawn(seed).inputs())
    base = scene_of(inputs, Edits(seed))
    dearer = scene_of(_dearer(inputs), Edits(seed))
    told = with_impact(dearer, base)
    for bills in told.bills.values():
        assert bills.with_change == bills.without
    assert sums(told)["change"] == 0


def _dearer(inputs: Inputs) -> Inputs:
    desired: Desired = inputs.desired
    pools = []
    for pool in desired.pools:
        types = [
            replace(
                each,
                price_per_hour={
                    kind: type(money)(money.micro_dollars * 2) for kind, money in each.price_per_hour.items()
                },
            )
            for each in pool.spec.instance_types
        ]
        pools.append(replace(pool, spec=replace(pool.spec, instance_types=types, committed_nodes=3)))
    return replace(inputs, desired=replace(desired, pools=tuple(pools)))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_smart_pod_that_is_made_is_one_purchase(seed: int) -> None:
    head, _ = drawn(seed, is_priced=True)
    made = {
        each.subject.name
        for each in head.plan.decisions
        if each.planner == "smart_pods" and each.subject.kind == "Pod" and "SmartPodAsks" in each.reason.code
    }
    asked = [each.name for each in head.plan.report(CapacityReport).purchases if each.stage == "request"]
    assert len(asked) == len(set(asked))
    assert made <= set(asked)
