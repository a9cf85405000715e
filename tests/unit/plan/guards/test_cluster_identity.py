"""Guards: nothing is done in a cluster that one is not for."""

import msgspec
import pytest

from reconciler.loop.cycle import decide
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Apply, Hold
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.guards import ChangeGuard
from reconciler.plan.guards.admission import guard_cluster_messages
from reconciler.report.plans.build import planned_of
from reconciler.report.sentences import sentence
from tests.unit.plan.manifests.stage import POLICY, inputs_of
from tests.unit.report.plans.samples import ALONE

OURS = "9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21"
OTHER = "2f54a17b-52d1-4c0a-9f5e-0d6f6a1c7e21"
TAINT = {"spec": {"template": {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}}}
WARNING = "ChangeGuard/fleet is for cluster 9b3c6f0e, this is 2f54a17b: no action would be carried out"


def given(wanted: str | None, found: str, pools: tuple[str, ...] = ("*",), suspend: bool = False) -> Inputs:
    """An edit that drifts the three nodes of a100, and a guard."""
    inputs = inputs_of({"nodes": 3, "wish": TAINT, "drifted": 1})
    spec = ChangeGuard(pool_names=list(pools), cluster_uid=wanted, suspend=suspend)
    guard = Declared("ChangeGuard", "fleet", spec, (("", POLICY),))
    return msgspec.structs.replace(
        inputs,
        desired=msgspec.structs.replace(inputs.desired, guards=(guard,)),
        observed=msgspec.structs.replace(inputs.observed, cluster_uid=found),
    )


def test_in_another_cluster_every_action_is_held_and_nothing_comes_of_it() -> None:
    made = decide(given(OURS, OTHER)).plan
    (decision,) = made.decisions
    assert isinstance(decision.act, Hold)
    assert sentence(decision.reason) == (
        "ChangeGuard/fleet is for cluster 9b3c6f0e, and this cluster is 2f54a17b: no action on guarded objects is "
        "carried out here."
    )
    assert [(each.cause, each.nodes) for each in made.consequences] == [("standing", ("node-2",))]


@pytest.mark.parametrize(
    "inputs",
    [
        given(OURS, OURS),
        given(None, OTHER),
        given(OURS, ""),
        given(OURS, OTHER, ("l4",)),
        given(OURS, OTHER, suspend=True),
    ],
)
def test_a_guard_of_this_cluster_or_of_another_pool_or_suspended_holds_nothing(inputs: Inputs) -> None:
    made = decide(inputs).plan
    assert isinstance(made.decisions[0].act, Apply)
    assert any(each.cause == "change" for each in made.consequences)


def test_a_guard_of_another_cluster_is_warned_of() -> None:
    told = planned_of(ALONE, decide(given(OURS, OTHER)), None)
    assert (told.warnings, told.notices) == ((WARNING,), ())
    some = planned_of(ALONE, decide(given(OURS, OTHER, ("l4",))), None)
    assert some.warnings == (f"{WARNING} for l4",)


def test_where_the_cluster_is_not_known_that_is_said() -> None:
    unknown = "ChangeGuard/fleet is for cluster 9b3c6f0e, and the UID of this cluster is unknown"
    assert guard_cluster_messages(given(OURS, "")).notices == (unknown,)
    assert guard_cluster_messages(given(OURS, OURS)).notices == ()


def test_uids_that_begin_alike_are_told_whole() -> None:
    (warning,) = guard_cluster_messages(given(OURS, OURS[:-1] + "0")).warnings
    assert OURS in warning
    assert f"this is {OURS[:-1]}0" in warning
