"""Statuses of objects that come in bundles: which bundle they speak of, who is to blame, and what is waited for."""

import msgspec
import pytest

from reconciler.model.cluster.bundle_objects import bundle_title
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.problem import Problem
from reconciler.plan.status.conditions import StatusContext
from reconciler.policy.custom_resources import digest_of
from reconciler.report.conditions import received, statuses
from tests.unit.plan.status.stage import (
    BROKEN,
    COMING,
    LATER,
    NOW,
    READY,
    RESOURCES,
    STUCK,
    after,
    conditions,
    inputs,
    plan,
    reason,
    told,
    wish,
)
from tests.unit.policy.custom_resources.stage import POLICIES as TEXT
from tests.unit.policy.custom_resources.stage import by_hand, rendered, wish_of


def test_only_the_object_with_the_problem_is_stalled_and_the_others_wait_for_its_bundle() -> None:
    found = told(statuses(inputs(wish()), plan(), StatusContext((BROKEN,), are_resources=True)))
    broken = found.pop("GpuPool/a100")
    assert (conditions(broken), reason(broken)) == (STUCK, "Invalid")
    assert broken["problems"] == ["RC103: spec.devices.count: expected an integer; write 2"]
    title = bundle_title(digest_of(wish()), "4c1f9e2")
    for other in found.values():
        assert (conditions(other), reason(other), other["problems"]) == (COMING, "WaitingForBundle", [])
        told_of_it = other["conditions"][0]["message"]
        assert told_of_it.startswith(f"{title} is not applied until GpuPool/a100 is corrected: RC103")


def test_each_status_names_the_bundle_that_it_speaks_of() -> None:
    digest = digest_of(wish())
    for problems in ((), (BROKEN,)):
        found = told(statuses(inputs(wish()), plan(), StatusContext(problems, are_resources=True)))
        assert {each["bundle"] for each in found.values()} == {digest}
    by_hand_alone = told(statuses(inputs(wish(), objects=by_hand()), plan(), RESOURCES))
    assert not [each for each in by_hand_alone.values() if "bundle" in each]


def test_an_object_that_belongs_to_no_bundle_any_more_names_none() -> None:
    live = after(rendered(wish()), statuses(inputs(wish()), plan(), RESOURCES))
    freed = [msgspec.structs.replace(each, metadata=bare.metadata) for each, bare in zip(live, by_hand(), strict=True)]
    found = told(statuses(inputs(wish(), objects=freed), plan(), RESOURCES))
    assert len(found) == 4
    assert not [each for each in found.values() if "bundle" in each]


SECOND = {"revision": "b7d0a15"}


def with_statuses(new: list[Unstructured], old: list[Unstructured]) -> list[Unstructured]:
    """What applying the new objects leaves in the cluster: a status outlives it."""
    status = {each.name + each.kind: each.rest["status"] for each in old}
    return [msgspec.structs.replace(each, rest={**each.rest, "status": status[each.name + each.kind]}) for each in new]


@pytest.mark.parametrize("problems", [(), (BROKEN,)], ids=["good", "bad"])
def test_a_new_bundle_is_reconciling_first_whatever_came_of_the_one_before(problems: tuple[Problem, ...]) -> None:
    first = rendered(wish())
    before = StatusContext((BROKEN,), are_resources=True)
    stalled = after(first, statuses(inputs(wish(), objects=first), plan(), before))
    second = wish_of(**SECOND)
    applied = with_statuses(rendered(second), stalled)
    at_once = received(Observed(policies=tuple(applied)), NOW)
    assert {str(conditions(each)) for each in told(at_once).values()} == {str(COMING)}
    assert {reason(each) for each in told(at_once).values()} == {"BundleReceived"}
    judged = StatusContext(problems, are_resources=True)
    unseen = told(statuses(inputs(second, objects=applied), plan(), judged))
    assert {str(conditions(each)) for each in unseen.values()} == {str(COMING)}
    live = after(applied, at_once)
    assert received(Observed(policies=tuple(live)), NOW) == ()
    found = told(statuses(inputs(second, LATER, live), plan(), judged))
    assert conditions(found["GpuPool/a100"]) == (STUCK if problems else READY)
    assert conditions(found["GpuPool/l4"]) == (COMING if problems else READY)


def test_an_object_that_nobody_spoke_of_yet_is_not_received_but_told_at_once() -> None:
    fresh = [msgspec.structs.replace(each, rest={**each.rest, "status": {"observedGeneration": -1}})
             for each in rendered(wish())]  # fmt: skip
    assert received(Observed(policies=tuple(fresh)), NOW) == ()
    found = told(statuses(inputs(wish(), objects=fresh), plan(), RESOURCES))
    assert {str(conditions(each)) for each in found.values()} == {str(READY)}


def test_a_digest_that_is_too_long_for_a_status_is_told_once() -> None:
    (first, *_) = rendered(wish())
    notes = {"gpu.scheduling/bundle-digest": "x" * 5_000, "gpu.scheduling/bundle-count": "1"}
    odd = [msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, annotations=notes))]
    live = after(odd, statuses(inputs(wish(), objects=odd), plan(), RESOURCES))
    assert len(live[0].rest["status"]["bundle"]) == 128
    assert statuses(inputs(wish(), LATER, live), plan(), RESOURCES) == ()


@pytest.mark.parametrize(
    ("code", "why"),
    [("RC522", "SeveralBundles"), ("RC523", "PoliciesUnread"), ("RC508", "PoliciesRefused")],
)
def test_a_problem_that_no_object_causes_has_a_reason_of_its_own(code: str, why: str) -> None:
    problem = Problem("custom resources", 0, 0, code, "no one object is to blame", "look")
    found = told(statuses(inputs(wish()), plan(), StatusContext((problem,), are_resources=True)))
    assert {(str(conditions(each)), reason(each)) for each in found.values()} == {(str(STUCK), why)}


HALF = Problem("custom resources", 0, 0, "RC521", "no bundle is complete", "apply all")


def test_while_a_bundle_is_being_applied_its_objects_say_which_objects_are_missing() -> None:
    objects = rendered(wish())[:2]
    found = told(statuses(inputs(wish(), objects=objects), plan(), StatusContext((HALF,), are_resources=True)))
    assert {str(conditions(each)) for each in found.values()} == {str(COMING)}
    assert {reason(each) for each in found.values()} == {"BundleIncomplete"}
    message = found["GpuPool/l4"]["conditions"][0]["message"]
    assert "2 of 4 objects of bundle" in message
    assert "(missing: NodeProvisioner/a100 and 1 more)" in message
    assert "one sync wave" in message


def test_an_object_of_the_bundle_before_waits_for_the_new_one_while_that_is_being_applied() -> None:
    first = rendered(wish())
    live = after(first, statuses(inputs(wish(), objects=first), plan(), RESOURCES))
    mixed = with_statuses([*rendered(wish_of(**SECOND))[:2], *first[2:]], live)
    found = told(statuses(inputs(wish(), objects=mixed), plan(), StatusContext((HALF,), are_resources=True)))
    reasons = {name: reason(status) for name, status in found.items()}
    assert reasons == {
        "GpuPool/a100": "BundleIncomplete",
        "GpuPool/l4": "BundleIncomplete",
        "NodeProvisioner/a100": "WaitingForBundle",
        "ChangeGuard/fleet": "WaitingForBundle",
    }
    assert {str(conditions(each)) for each in found.values()} == {str(COMING)}


def test_the_first_objects_of_a_bundle_wait_for_the_rest_beside_one_that_is_followed() -> None:
    """A sync wave that brings only new objects leaves the bundle before whole."""
    text = TEXT.replace("name: l4}", "name: h100}").replace("g6.12xlarge", "p5.48xlarge")
    more = wish_of(text.replace("model: l4, count: 4", "model: h100, count: 8"), **SECOND)
    (new,) = (each for each in rendered(more) if each.name == "h100")
    found = told(statuses(inputs(wish(), objects=[*rendered(wish()), new]), plan(), RESOURCES))
    assert reason(found["GpuPool/h100"]) == "BundleIncomplete"
    assert conditions(found["GpuPool/h100"]) == COMING
    assert conditions(found["GpuPool/l4"]) == READY


def test_what_a_smaller_bundle_leaves_behind_is_stalled_also_after_it_waited_for_that_bundle() -> None:
    first = rendered(wish())
    live = after(first, statuses(inputs(wish(), objects=first), plan(), RESOURCES))
    fewer = wish_of("---\n".join(each for each in TEXT.split("---\n") if "name: l4" not in each), **SECOND)
    (left,) = (each for each in live if each.name == "l4")
    partly = with_statuses(rendered(fewer)[:1], live)
    waiting = statuses(inputs(wish(), objects=[*partly, left]), plan(), StatusContext((HALF,), are_resources=True))
    (left,) = after([left], waiting)
    whole_now = [*with_statuses(rendered(fewer), live), left]
    found = told(statuses(inputs(fewer, objects=whole_now), plan(), RESOURCES))
    assert (conditions(found["GpuPool/l4"]), reason(found["GpuPool/l4"])) == (STUCK, "NotInBundle")
