"""Plans with all that they lead to, as tests/cases/impact/ describes them; see the top of its files."""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import instant
from reconciler.model.plan.consequence import Consequence
from reconciler.plan.files.dump import PlanningResult
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.planned import Planned
from reconciler.report.wording import difference
from tests import folders
from tests.unit.plan.scaling.stage import MACHINE, NOW
from tests.unit.plan.smart_pods.stage import SmartWorld
from tests.unit.report.plans.samples import ALONE, SETTING, spread

FOLDER = folders.CASES / "impact"
PRICED = {"name": MACHINE, "pricePerHour": {"on-demand": "20", "spot": "5"}}
COMES = frozenset({"bought", "scheduled", "limited"})

Json = dict[str, Any]


def table(name: str) -> dict[str, Json]:
    found: dict[str, Json] = yaml.safe_load((FOLDER / name).read_text())
    return found


def scene_of(case: Json) -> PlanningResult:
    """A plan of scaling and smart pods; what Karpenter removes is put into it."""
    pool = {"instanceTypes": [PRICED], **case.get("pool", {})}
    also = {name: {**said, "pool": {"instanceTypes": [PRICED]}} for name, said in case.get("also", {}).items()}
    world = SmartWorld({**case, "pool": pool, "also": also})
    made = world.planned()
    removed = tuple(f"a100-{number:03}" for number in case.get("removed", []))
    told = Consequence("a100", "a100", "change", "removed", removed, 8 * len(removed), 0, 0, 0)
    consequences = (spread(told),) if removed else ()
    plan = msgspec.structs.replace(made, consequences=(*made.consequences, *consequences))
    return PlanningResult(world.inputs, Fleet(world.inputs.observed), plan)


def planned(case: Json) -> Planned:
    compared = Compared(scene_of({**case, **case["base"]}), ()) if "base" in case else None
    setting = msgspec.structs.replace(SETTING if compared else ALONE, now=NOW, seen_at=NOW)
    return planned_of(setting, scene_of(case), compared)


def rows(told: Planned) -> Iterator[str]:
    """What comes, as in the JSON of the plan."""
    for each in plan_document(told).payload["consequences"]:
        if each["fate"] in COMES:
            yield " ".join(_row(each))


def _row(told: Json) -> Iterator[str]:
    yield f"{told['cause']} {len(told['nodes'])} {told['fate']} {told['stage']}"
    if told["bought_for"]:
        yield told["bought_for"]
    if told["pods_served"]:
        yield f"for {told['pods_served']}"
    yield from filter(None, (told["instance_type"], told["capacity_type"]))
    unpriced = f", {told['unpriced']} unpriced" if told["unpriced"] else ""
    yield f"{told['gpus']} GPUs {difference(told['micro_dollars_per_hour'])}{unpriced}"
    if told["begins_at"]:
        yield f"at {_seconds(told['begins_at'])}"
    if told["limit"]:
        yield f"by {told['limit']}"


def _seconds(written: str) -> int:
    return (instant(written) - NOW) // 1000
