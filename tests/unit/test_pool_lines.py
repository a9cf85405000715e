"""What each pool is said to cost, before and after: by the policies of the base, and by those of the change."""

from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.desired import Declared, Desired
from reconciler.model.planned.consequence import Cause, Consequence, Fate
from reconciler.model.planned.inputs import Inputs
from reconciler.model.quantity import Money
from reconciler.plan.kept.scene import Scene
from reconciler.report.plans.planned import Cost, PoolLine
from reconciler.report.plans.pool_lines import pool_lines, priced_as_before
from tests.unit.fates_stage import NOW, POOL, gpu_pool, observed
from tests.unit.plan_samples import plan, spread

THREE = {"nodes": {"n": {"count": 3, "pods": [8]}}}
L4 = Declared("GpuPool", "l4", gpu_pool({}), ())


def scene(pool: dict[str, Any] | None, *consequences: Consequence, seen: Observed | None = None) -> Scene:
    """Three nodes on demand, of a pool as these words declare it, or that nobody declares."""
    there = seen or observed(THREE)
    declared = () if pool is None else (Declared("GpuPool", POOL, gpu_pool(pool), ()),)
    inputs = Inputs(Desired("r", "prod", pools=(L4, *declared)), there, NOW)
    return Scene(inputs, Fleet(there), plan(consequences=consequences))


def fated(fate: Fate, cause: Cause, *names: str) -> Consequence:
    return spread(Consequence(POOL, POOL, cause, fate, names, 8 * len(names), 8 * len(names), len(names), 0))


def line(head: Scene, base: Scene | None = None) -> PoolLine:
    return next(each for each in pool_lines(head, base) if each.pool == POOL)


def cost(now: str, without: str, with_change: str, committed: str = "0", committed_with: str = "0") -> Cost:
    amounts = (now, without, with_change, committed, committed_with)
    return Cost(*(Money.parse(each).micro_dollars for each in amounts))


def test_a_price_that_is_edited_is_paid_before_by_the_old_and_then_by_the_new() -> None:
    dearer = {"types": {"p4d.24xlarge": {"on-demand": "30"}}}
    assert line(scene(dearer), scene({})).cost == cost("65.88", "65.88", "90")


def test_a_commitment_that_is_edited_is_paid_before_by_the_old_and_then_by_the_new() -> None:
    found = line(scene({"committed": 4}), scene({"committed": 1})).cost
    assert found == cost("80.63", "80.63", "124.88", "14.75", "59")


def test_nodes_that_become_reserved_ones_cost_what_those_do() -> None:
    replaced = fated("replaced", "change", "n-0", "n-1")
    assert line(scene({"capacity_types": ["reserved"]}, replaced), scene({})).cost == cost("65.88", "65.88", "51.46")


def test_a_pool_that_the_change_drops_is_paid_for_by_its_base() -> None:
    deleted = fated("deleted", "change", "n-0", "n-1", "n-2")
    found = line(scene(None, deleted), scene({"committed": 1}))
    assert found.cost == cost("80.63", "80.63", "14.75", "14.75", "14.75")
    assert (found.declared, found.unpriced) == (False, 0)


def test_what_happens_to_a_pool_that_the_change_drops_is_priced_by_its_base() -> None:
    unpriced = msgspec.structs.replace(fated("deleted", "change", "n-0", "n-1", "n-2"), unpriced=3)
    (told,) = priced_as_before(scene(None, unpriced), scene({})).plan.consequences
    assert (told.micro_dollars_per_hour, told.unpriced) == (-Money.parse("65.88").micro_dollars, 0)
    (same,) = priced_as_before(scene(None, unpriced), None).plan.consequences
    assert same == unpriced


def test_a_pool_that_no_policy_prices_has_nodes_without_a_price() -> None:
    found = line(scene(None, fated("deleted", "change", "n-0")))
    assert (found.cost, found.unpriced, found.declared) == (Cost(), 3, False)


def test_nodes_without_a_node_claim_are_remarked_on() -> None:
    seen = observed({"nodes": {"n": {"count": 2}, "bare": {"claim": False}}})
    remark = "1 of its 3 nodes has no NodeClaim: Karpenter does nothing to it."
    assert line(scene({}, seen=seen)).remarks == (remark,)
    assert line(scene({})).remarks == ()
    blind = msgspec.structs.replace(seen, unread=(Unread("nodeclaims.karpenter.sh", "403"),))
    assert line(scene({}, seen=blind)).remarks == ()
