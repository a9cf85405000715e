"""What each pool is said to cost, before and after: the same nodes by the same prices, whatever a change edits."""

from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.consequence import Cause, Consequence, Fate, MachineOrder
from reconciler.model.plan.inputs import Inputs
from reconciler.model.quantity import Money
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.pricing import Bills, priced
from reconciler.report.plans.planned import PoolLine
from reconciler.report.plans.pool_section import pool_lines
from tests.unit.plan.karpenter.stage import NOW, POOL, gpu_pool, observed
from tests.unit.report.plans.samples import plan, spread

THREE = {"nodes": {"n": {"count": 3, "pods": [8]}}}
L4 = Declared("GpuPool", "l4", gpu_pool({}), ())


def scene(pool: dict[str, Any] | None, *consequences: Consequence, seen: Observed | None = None) -> PlanningResult:
    """Three nodes on demand, of a pool as these words declare it, or that nobody declares."""
    there = seen or observed(THREE)
    declared = () if pool is None else (Declared("GpuPool", POOL, gpu_pool(pool), ()),)
    inputs = Inputs(Desired("r", "prod", pools=(L4, *declared)), there, NOW)
    return PlanningResult(inputs, Fleet(there), plan(consequences=consequences))


def fated(fate: Fate, cause: Cause, *names: str) -> Consequence:
    return spread(Consequence(POOL, POOL, cause, fate, names, 8 * len(names), 8 * len(names), len(names), 0))


def line(head: PlanningResult, base: PlanningResult | None = None) -> PoolLine:
    told = priced(head, base)
    return next(each for each in pool_lines(told.scene, told.base, told.bills) if each.pool == POOL)


def cost(now: str, without: str, with_change: str, committed: str = "0", repriced: str = "0") -> Bills:
    amounts = (now, without, with_change, committed, repriced)
    return Bills(*(Money.parse(each).micro_dollars for each in amounts))


def test_a_price_that_is_edited_holds_before_and_after_and_what_it_alters_is_told_apart() -> None:
    dearer = {"types": {"p4d.24xlarge": {"on-demand": "30"}}}
    assert line(scene(dearer), scene({})).cost == cost("90", "90", "90", repriced="24.12")


def test_a_commitment_that_is_edited_holds_before_and_after_and_what_it_alters_is_told_apart() -> None:
    found = line(scene({"committed": 4}), scene({"committed": 1})).cost
    assert found == cost("124.88", "124.88", "124.88", "59", "44.25")


def test_machines_that_the_change_prices_no_more_cost_what_they_did() -> None:
    other = {"types": {"p5.48xlarge": {"on-demand": "55"}}}
    assert line(scene(other), scene({})).cost == cost("65.88", "65.88", "65.88")
    unpriced: dict[str, Any] = {"types": {"p4d.24xlarge": {}}}
    assert line(scene(unpriced), scene({})).cost == cost("65.88", "65.88", "65.88")
    assert line(scene(unpriced)).cost == Bills(unpriced=3)


def test_machines_that_only_the_change_prices_have_that_price_before_it_too() -> None:
    found = line(scene({}), scene({"types": {"p4d.24xlarge": {}}}))
    assert found.cost == cost("65.88", "65.88", "65.88")


def test_nodes_that_become_reserved_ones_cost_what_those_do() -> None:
    replaced = fated("replaced", "change", "n-0", "n-1")
    assert line(scene({"capacity_types": ["reserved"]}, replaced), scene({})).cost == cost("65.88", "65.88", "51.46")


def test_nodes_of_a_type_that_is_no_longer_listed_become_nodes_of_the_first_type_bought_in_the_same_way() -> None:
    replaced = fated("replaced", "change", "n-0", "n-1")
    other = {"types": {"p4de.24xlarge": {"reserved": "18", "on-demand": "27.45"}}}
    told = priced(scene(other, replaced), scene({}))
    assert told.bills[POOL].with_change - told.bills[POOL].now == Money.parse("10.98").micro_dollars
    (found,) = told.scene.plan.consequences
    assert (found.micro_dollars_per_hour, found.unpriced) == (Money.parse("10.98").micro_dollars, 0)
    assert found.order == MachineOrder("p4de.24xlarge", "on-demand")


def test_nodes_that_are_replaced_anyway_are_told_again_where_the_change_replaces_them_by_other_machines() -> None:
    replaced = fated("replaced", "standing", "n-0", "n-1")
    other = {"types": {"p4de.24xlarge": {"on-demand": "27.45"}}}
    told = priced(scene(other, replaced), scene({}, replaced))
    found = {each.fate: each for each in told.scene.plan.consequences}
    assert (found["replaced"].micro_dollars_per_hour, found["replaced"].cause) == (0, "standing")
    exchanged = found["exchanged"]
    assert (exchanged.micro_dollars_per_hour, exchanged.nodes, exchanged.pods) == (10_980_000, ("n-0", "n-1"), 0)
    bills = told.bills[POOL]
    assert (bills.without - bills.now, bills.with_change - bills.without) == (0, 10_980_000)


def test_where_it_is_not_known_what_follows_nodes_cost_the_bill_keeps_them() -> None:
    replaced = fated("replaced", "change", "n-0", "n-1")
    told = priced(scene({"types": {"p4de.24xlarge": {}}}, replaced), scene({}))
    bills = told.bills[POOL]
    assert (bills.now, bills.with_change) == (65_880_000, 65_880_000)
    (found,) = told.scene.plan.consequences
    assert (found.micro_dollars_per_hour, found.unpriced) == (0, 2)


def test_a_pool_that_the_change_drops_is_paid_for_by_its_base() -> None:
    deleted = fated("deleted", "change", "n-0", "n-1", "n-2")
    found = line(scene(None, deleted), scene({"committed": 1}))
    assert found.cost == cost("80.63", "80.63", "14.75", "14.75")
    assert not found.declared


def test_what_happens_to_a_pool_that_the_change_drops_is_priced_by_its_base() -> None:
    deleted = fated("deleted", "change", "n-0", "n-1", "n-2")
    (told,) = priced(scene(None, deleted), scene({})).scene.plan.consequences
    assert (told.micro_dollars_per_hour, told.unpriced) == (-Money.parse("65.88").micro_dollars, 0)
    (alone,) = priced(scene(None, deleted), None).scene.plan.consequences
    assert (alone.micro_dollars_per_hour, alone.unpriced) == (0, 3)


def test_a_node_with_another_fate_than_in_the_base_costs_the_difference_of_the_two() -> None:
    base = scene({}, fated("removed", "change", "n-0"))
    told = priced(scene({}, fated("deleted", "change", "n-0", "n-1")), base)
    (found,) = told.scene.plan.consequences
    assert found.micro_dollars_per_hour == -21_960_000
    bills = told.bills[POOL]
    assert (bills.now, bills.without, bills.with_change) == (65_880_000, 43_920_000, 21_960_000)


def test_what_the_change_spares_costs_what_it_would_have_saved() -> None:
    told = priced(scene({}), scene({}, fated("drained", "change", "n-0", "n-1")))
    assert told.base is not None
    (spared,) = told.base.plan.consequences
    assert spared.micro_dollars_per_hour == -43_920_000
    bills = told.bills[POOL]
    assert (bills.without, bills.with_change) == (21_960_000, 65_880_000)


def test_a_pool_that_no_policy_prices_has_nodes_without_a_price() -> None:
    found = line(scene(None, fated("deleted", "change", "n-0")))
    assert (found.cost, found.declared) == (Bills(unpriced=3), False)


def test_nodes_without_a_node_claim_are_remarked_on() -> None:
    seen = observed({"nodes": {"n": {"count": 2}, "bare": {"claim": False}}})
    remark = "1 of its 3 nodes has no NodeClaim: Karpenter does not manage it."
    assert line(scene({}, seen=seen)).remarks == (remark,)
    assert line(scene({})).remarks == ()
    blind = msgspec.structs.replace(seen, unread=(Unread("nodeclaims.karpenter.sh", "403"),))
    assert line(scene({}, seen=blind)).remarks == ()
