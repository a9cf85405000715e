"""A saved plan is applied exactly or refused, with a list of what moved."""

from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.memory import Memory
from reconciler.plan.kept import saved
from reconciler.plan.kept.saved import BadPlan
from reconciler.plan.kept.scene import Scene
from tests.unit.guards_stage import MINUTE_MS, NOW, World

LATER = Instant(NOW + 60 * MINUTE_MS)
ELSE = "something else would be done about it now"
CASE: dict[str, Any] = {
    "pools": {"a100": {"nodes": 6, "busy": 2}},
    "guards": {"fleet": {"perPlan": {"maxRemovedNodes": 4}}},
    "does": ["edit a100 removed 4-5; replaced 0", "scale-down a100 2-3"],
}


def scene(**changes: Any) -> Scene:
    world = World(CASE | changes)
    return Scene(world.inputs, Fleet(world.inputs.observed), world.planned())


def moved(now: Scene) -> tuple[str, ...]:
    return saved.moved(saved.read(saved.write(scene(), LATER)), now)


def pools(**said: Any) -> dict[str, Any]:
    return {"pools": {"a100": {"nodes": 6, "busy": 2, **said}}}


def test_where_nothing_moved_it_is_applied_as_it_was_saved() -> None:
    now = scene()
    kept = saved.read(saved.write(now, LATER))
    assert saved.moved(kept, now) == ()
    made = saved.exactly(kept, now)
    assert made.decisions == now.plan.decisions
    assert made.memory == now.plan.memory
    assert len(made.memory.marks) == 5


def test_what_came_to_the_plan_since_is_left_out_and_not_remembered() -> None:
    kept = saved.read(saved.write(scene(does=["scale-down a100 2-3"]), LATER))
    now = scene()
    assert saved.moved(kept, now) == ()
    made = saved.exactly(kept, now)
    assert {each.subject.name for each in made.decisions} == {"a100-2", "a100-3"}
    assert {each.name for each in made.memory.marks} == {"a100-2", "a100-3"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"minutes_later": 60}, ("it expired at 2026-10-26T08:33:20Z",)),
        (
            {"does": ["edit a100 removed 4-5; replaced 0"]},
            (
                "Node/a100-2: nothing is to be done about it any more",
                "Node/a100-3: nothing is to be done about it any more",
            ),
        ),
        (
            {"does": ["edit a100 removed 4-5; replaced 0-1", "scale-down a100 2-3"]},
            ("NodePool/a100: it would take a100-1 too",),
        ),
        ({"does": ["edit a100 removed 4-5", "scale-down a100 2-3"]}, ()),
        (pools(busy=3), ("Node/a100-2: more is in use on a100-2",)),
        (
            {"does": ["edit a100 removed 4-5; replaced 0", "drain a100 2", "scale-down a100 3"]},
            (f"Node/a100-2: {ELSE}: Node/a100-2 is not in the cluster yet: it is made.",),
        ),
        (
            pools(disrupted="2"),
            ("Node/a100-2: it is held now: Karpenter is disrupting a100-2: what happens to it next is its affair.",),
        ),
        ({"unread": ["poddisruptionbudgets.policy"]}, ("poddisruptionbudgets.policy could not be read: timed out",)),
    ],
)
def test_it_is_refused_with_what_moved(changes: dict[str, Any], told: tuple[str, ...]) -> None:
    assert moved(scene(**changes)) == told


def test_in_another_cluster_nothing_else_is_looked_at() -> None:
    now = scene()
    observed = msgspec.structs.replace(now.inputs.observed, cluster_uid="other")
    elsewhere = msgspec.structs.replace(now, inputs=msgspec.structs.replace(now.inputs, observed=observed))
    assert moved(elsewhere) == ("it is for cluster unknown, and this is other",)


def test_a_guard_that_is_full_by_now_refuses_it() -> None:
    full = scene(guards={"fleet": {"perPlan": {"maxRemovedNodes": 3}}})
    assert all("it is held now: ChangeGuard/fleet allows less" in told for told in moved(full))
    assert len(moved(full)) == 3


def test_an_object_that_was_only_written_again_moves_nothing() -> None:
    now = scene()
    kept = saved.read(saved.write(now, LATER))
    step = kept.steps[0]
    newer = msgspec.structs.replace(step.decision.act.presumes, resource_version="6")  # type: ignore[union-attr]
    act = msgspec.structs.replace(step.decision.act, presumes=newer)
    older = msgspec.structs.replace(step, decision=msgspec.structs.replace(step.decision, act=act))
    assert saved.moved(msgspec.structs.replace(kept, steps=(older, *kept.steps[1:])), now) == ()


def test_an_object_of_the_same_name_that_was_made_anew_is_another() -> None:
    now = scene()
    kept = saved.read(saved.write(now, LATER))
    step = kept.steps[0]
    subject = msgspec.structs.replace(step.decision.subject, uid="before")
    older = msgspec.structs.replace(step, decision=msgspec.structs.replace(step.decision, subject=subject))
    assert saved.moved(msgspec.structs.replace(kept, steps=(older,)), now) == (
        "NodePool/a100: it is another object of that name",
    )


def test_it_holds_no_object_of_the_cluster_and_the_policies_that_it_follows_from() -> None:
    now = scene()
    content = saved.write(now, LATER)
    assert saved.write(now, LATER) == content
    assert b"train-a100-0" not in content
    inputs = saved.inputs_for(saved.read(content), now.inputs.observed, Memory(), now.inputs.now)
    assert inputs == Inputs(now.inputs.desired, now.inputs.observed, now.inputs.now)


def test_what_a_guard_holds_is_not_in_it() -> None:
    held = scene(guards={"fleet": {"perPlan": {"maxRemovedNodes": 0}}})
    assert saved.saved_of(held, LATER).steps == ()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"not json", "it is no saved plan"),
        (b'{"format": "reconciler-dump/1"}', 'its format is "reconciler-dump/1"'),
        (b'{"format": "reconciler-plan/2"}', "it is a saved plan of format 2, and this version of reconciler reads 1"),
        (b'{"format": "reconciler-plan/1", "plan": {}}', "does not match its digest"),
        (saved.write(scene(), LATER).replace(b"a100-2", b"a100-5"), "does not match its digest"),
    ],
)
def test_what_is_no_saved_plan_is_refused_with_a_remedy(content: bytes, told: str) -> None:
    with pytest.raises(BadPlan, match=told) as raised:
        saved.read(content)
    assert raised.value.remedy


def test_a_file_that_was_only_laid_out_anew_is_the_same() -> None:
    content = saved.write(scene(), LATER)
    assert saved.read(msgspec.json.format(content, indent=2)) == saved.read(content)
