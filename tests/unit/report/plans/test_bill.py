"""The money in the report of a plan: one figure where nothing changes, and a word wherever a price is not known."""

import msgspec

from reconciler.plan.impact.pricing import Bills
from reconciler.report import write
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.planned import Planned
from tests.unit.report.plans.samples import POOL, PULL_REQUEST, REMOVED, REPLACED, plan

replace = msgspec.structs.replace


def told(plan_told: Planned) -> str:
    return write(plan_document(plan_told), "text", color=False)


def test_a_bill_that_changes_by_what_nobody_knows_is_not_called_unchanged() -> None:
    same = replace(POOL, cost=Bills(1_000_000, 1_000_000, 1_000_000))
    unknown = replace(REMOVED, unpriced=34)
    lines = told(replace(PULL_REQUEST, pools=(same,), plan=plan(consequences=(unknown,)), decision_texts=()))
    assert "Cost   $1.00/h\n" in lines


def test_where_the_change_edits_prices_the_fleet_is_told_by_those_of_the_base_as_well() -> None:
    dearer = replace(POOL, cost=Bills(9_000_000, 9_000_000, 9_000_000, 5_000_000, 2_000_000))
    lines = told(replace(PULL_REQUEST, pools=(dearer,), changes=(), decision_texts=(), plan=plan(), base=plan()))
    assert "Cost   $9.00/h, unchanged   (includes $5.00/h that is paid whether nodes run or not)\n" in lines
    assert "note: with the prices and commitments before this change, the same nodes cost $7.00/h now.\n" in lines


def test_machines_of_a_new_sort_without_a_price_are_named() -> None:
    unknown = replace(REPLACED, unpriced=3)
    lines = told(replace(PULL_REQUEST, plan=plan(consequences=(unknown,)), decision_texts=()))
    assert "  note: 3 nodes will be of another machine type, whose price is unknown: excluded from $/h.\n" in lines


def test_a_cost_that_stays_is_one_figure_and_unknown_prices_are_none() -> None:
    same = replace(POOL, cost=Bills(1_000_000, 1_000_000, 1_000_000, unpriced=1))
    lines = told(replace(PULL_REQUEST, pools=(same,)))
    assert "Cost   $1.00/h, unchanged\nnote: 1 node without a declared price: excluded from the cost.\n" in lines
    assert "Cost" not in told(replace(PULL_REQUEST, pools=(replace(POOL, cost=Bills()),)))
