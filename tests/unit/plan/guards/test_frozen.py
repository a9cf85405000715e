"""What is frozen or suspended is left as it is, as tests/cases/guards/frozen.yaml says, and every freeze is told."""

from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import Annotate, Apply, Decision, Delete, Hold, Ref, Status
from reconciler.plan.check import BrokenInvariant, check
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.frozen import REASONS, RELEASE, Freezes
from reconciler.report.explain.subject import about, parse_subject
from reconciler.report.plans.build import planned_of
from reconciler.report.sentences import sentence
from reconciler.report.status.overview import overview_document, overview_of
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.guards.stage import MINUTE_MS, World, table
from tests.unit.plan.guards.test_limits import expected, shown
from tests.unit.report.plans.samples import ALONE

CASES = table("frozen.yaml")
AN_AUDIT = "untainting goes on where all is frozen"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_frozen_is_left_as_it_is(case: dict[str, Any]) -> None:
    world = World(case)
    made = world.planned()
    assert lines_of(made.decisions, world.now) == expected(case, world)
    held = {
        each.subject.name for each in made.decisions if isinstance(each.act, Hold) and each.subject.kind == "NodePool"
    }
    assert held.isdisjoint(each.node_pool for each in made.consequences)
    if "room_in" in case:
        assert made.wake_at == world.now + case["room_in"] * MINUTE_MS


def test_each_reason_appears_in_a_case() -> None:
    assert shown(CASES.values()) == {each.__name__ for each in REASONS}


def test_a_sentence_says_until_when_and_why() -> None:
    made = World(CASES[AN_AUDIT]).planned()
    told = {sentence(each.reason) for each in made.decisions if each.subject.name == "a100-1"}
    assert told == {"everything is frozen until 2026-10-26T08:33:20Z (an audit): Node/a100-1 is not changed."}


@pytest.mark.parametrize(
    ("planner", "subject", "act", "goes_on"),
    [
        (RELEASE, Ref("Node", "", "a100-1", "uid-a100-1"), Annotate(annotations=(("a", None),)), True),
        ("hand", Ref("Lease", "gpu-system", "a100-1-0"), Delete(), True),
        ("hand", Ref("GpuPool", "", "a100"), Status(body="{}"), True),
        ("hand", Ref("Node", "", "a100-1", "uid-a100-1"), Annotate(annotations=(("a", None),)), False),
        ("hand", Ref("Pod", "gpu-system", "smart"), Apply(manifest="{}"), False),
    ],
)
def test_only_untainting_and_releasing_go_on(planner: str, subject: Ref, act: Any, goes_on: bool) -> None:
    world = World(CASES[AN_AUDIT])
    decision = Decision(planner, subject, act, world.verdict().decisions[0].reason, "a100")
    assert (Freezes(world.inputs, world.fleet).why_still(decision, frozenset()) is None) is goes_on


def test_a_plan_that_acts_on_what_is_frozen_is_refused() -> None:
    world = World(CASES[AN_AUDIT])
    made = msgspec.structs.replace(world.planned(), decisions=world.verdict().decisions)
    with pytest.raises(BrokenInvariant, match="no action on a frozen or suspended object"):
        check(world.inputs, world.fleet, made)


def test_status_begins_with_what_is_frozen() -> None:
    world = World(CASES[AN_AUDIT])
    scene = PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())
    document = overview_document(overview_of(ALONE, scene))
    assert document.blocks[0].parts == ("FROZEN: everything, until 2026-10-26T08:33:20Z (an audit)",)  # type: ignore[union-attr]
    assert document.payload["freezes"] == [
        {"what": "everything", "until": "2026-10-26T08:33:20Z", "reason": "an audit"}
    ]
    warned = planned_of(ALONE, scene, None).warnings
    assert warned == ("everything is frozen until 2026-10-26T08:33:20Z (an audit)",)


def test_a_node_and_a_pool_explain_the_freeze_that_they_are_under() -> None:
    world = World(CASES["a frozen pool is not edited nor are its nodes touched"])
    scene = PlanningResult(world.inputs, world.fleet, world.planned())
    told = (
        "pool a100, until 2026-10-26T08:33:20Z: the controller only removes its own taints, gates, Leases and "
        "eviction times"
    )
    for subject in ("node/a100-0", "pool/a100"):
        assert ("frozen", told) in about(scene, parse_subject(subject)).rows
    assert "frozen" not in dict(about(scene, parse_subject("node/l4-0")).rows)
