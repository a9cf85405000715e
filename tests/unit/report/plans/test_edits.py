"""What edits of a GpuPool cost: the same nodes before and after, as tests/cases/impact/edits.yaml tells."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files.dump import PlanningResult
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.planned import Planned
from reconciler.report.wording import difference
from tests.unit.plan.impact.stage import table
from tests.unit.plan.karpenter.stage import NOW, POOL, gpu_pool, observed
from tests.unit.report.plans.samples import SETTING, plan, spread

Json = dict[str, Any]
CASES = table("edits.yaml")
THREE = {"n": {"count": 3, "pods": [8]}}
NOTHING = {"pool": POOL, "node_pool": POOL, "gpus": 0, "gpus_in_use": 0, "pods": 0, "micro_dollars_per_hour": 0}


def scene_of(case: Json, declared: Json | None, fates: Json) -> PlanningResult:
    seen = observed({"nodes": case.get("nodes", THREE)})
    pools = () if declared is None else (Declared("GpuPool", POOL, gpu_pool(declared), ()),)
    consequences = []
    for told, names in fates.items():
        cause, fate = told.split()
        like = msgspec.convert({**NOTHING, "cause": cause, "fate": fate, "nodes": names}, Consequence)
        consequences.append(spread(msgspec.structs.replace(like, gpus=8 * len(names), pods=len(names))))
    inputs = Inputs(Desired("r", "prod", pools=pools), seen, NOW)
    return PlanningResult(inputs, Fleet(seen), plan(consequences=tuple(consequences)))


def planned(case: Json) -> Planned:
    base = scene_of(case, case.get("base", {}), case.get("before", {}))
    head = scene_of(case, case.get("head", {}), case.get("fates", {}))
    return planned_of(SETTING, head, Compared(base, ()))


def rows(payload: Json) -> Iterator[str]:
    for each in payload["consequences"]:
        unpriced = f", {each['unpriced']} unpriced" if each["unpriced"] else ""
        money = difference(each["micro_dollars_per_hour"]).removesuffix(".00")
        by = f" by {each['instance_type']} ({each['capacity_type']})" if each["instance_type"] else ""
        yield f"{each['cause']} {each['fate']} {len(each['nodes'])} {money}{unpriced}{by}"


@pytest.mark.parametrize("name", CASES)
def test_an_edit_compares_the_same_nodes(name: str) -> None:
    case = CASES[name]
    payload = plan_document(planned(case)).payload
    impact = payload["impact"]
    money = [impact["micro_dollars_per_hour"][when] for when in ("now", "before", "after")]
    assert money == [int(Decimal(str(each)) * 1_000_000) for each in case["money"]]
    assert impact["repriced_micro_dollars_per_hour"] == int(Decimal(str(case.get("repriced", 0))) * 1_000_000)
    assert list(rows(payload)) == case.get("rows", [])
