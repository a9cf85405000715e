"""All planners plan over one draft: a plan comes of any cluster, and what one planner claims, no other plans with."""

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.pod import LocalObjectReference
from reconciler.model.desired import Manifest
from reconciler.model.plan.decision import Decision, Delete, Evict, Hold, Label, Ref, Taint, Ungate
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import check
from reconciler.plan.guards.admission import one_action_each
from reconciler.plan.planner import plan
from tests.unit.plan.drain.stage import World as DrainWorld
from tests.unit.plan.drawn_fleets import Drawn
from tests.unit.plan.manifests.stage import POLICY
from tests.unit.plan.scaling.stage import World as ScalingWorld
from tests.unit.plan.some_reasons import some_reason

AT_ONCE, DRAWN = 100, 800
WISHED = {"metadata": {"name": "a100"}, "spec": {"template": {"metadata": {"labels": {f"{names.OURS}tier": "gold"}}}}}


def planned(inputs: Inputs) -> Plan:
    """By all planners; no invariant is broken."""
    fleet = Fleet(inputs.observed)
    made = plan(inputs, fleet)
    check(inputs, fleet, made)
    assert made.troubles == ()
    return made


def adopted(inputs: Inputs) -> Inputs:
    """With a NodePool that was adopted a moment ago: its nodes lack the labels that its template may not have."""
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **WISHED}
    text = msgspec.json.encode(body, order="sorted").decode()
    manifest = Manifest("NodePool", "", "a100", text, "a100", POLICY, POLICY)
    (found,) = inputs.observed.node_pools
    metadata = msgspec.structs.replace(found.metadata, annotations={names.ADOPTED: "true"}, uid="uid-a100")
    node_pools = (msgspec.structs.replace(found, metadata=metadata, rest={"spec": {"template": {}}}),)
    return msgspec.structs.replace(
        inputs,
        desired=msgspec.structs.replace(inputs.desired, manifests=(manifest,)),
        observed=msgspec.structs.replace(inputs.observed, node_pools=node_pools),
    )


def acted(made: Plan, node: str) -> list[tuple[str, str]]:
    """Who does what to a node."""
    found = (each for each in made.decisions if each.subject.name == node and not isinstance(each.act, Hold))
    return [(each.planner, type(each.act).__name__) for each in found]


def held(made: Plan, node: str) -> list[tuple[str, str]]:
    """Who waits with what is to be done to a node, and by which reason."""
    found = (each for each in made.decisions if each.subject.name == node and isinstance(each.act, Hold))
    return [(each.planner, each.reason.code) for each in found]


def test_a_node_that_lacks_a_label_and_is_surplus_is_marked_now_and_labelled_by_the_next_plan() -> None:
    made = planned(adopted(ScalingWorld({"nodes": 10, "busy": "0-6"}).inputs))
    assert acted(made, "a100-007") == [("scaling", "Taint")]
    assert held(made, "a100-007") == [("manifests", "TakesTurns")]
    assert acted(made, "a100-000") == [("manifests", "Label")]


@pytest.mark.parametrize("mark", ["hard 0", "soft 20", "soft x"])
def test_a_node_that_lacks_a_label_and_bears_a_mark_goes_on_to_be_deleted_or_kept(mark: str) -> None:
    made = planned(adopted(ScalingWorld({"nodes": 10, "busy": "0-6", "marked": {9: mark}}).inputs))
    assert [planner for planner, _ in acted(made, "a100-009")] == ["scaling"]
    assert held(made, "a100-009") == [("manifests", "TakesTurns")]


def test_a_node_that_lacks_a_label_and_is_drained_begins_to_be_drained_now() -> None:
    world = DrainWorld({"nodes": {"a": {"pods": ["web 1"], "candidate": 900}, "b": {"pods": ["web 5"]}}})
    node_pool = ScalingWorld({}).inputs.observed.node_pools
    observed = msgspec.structs.replace(world.inputs.observed, node_pools=node_pool)
    made = planned(adopted(msgspec.structs.replace(world.inputs, observed=observed)))
    assert acted(made, "a") == [("drain", "Taint")]
    assert held(made, "a") == [("manifests", "TakesTurns")]


NODE = Ref("Node", "", "n", "uid-n")
LABEL, OTHER_LABEL = Label(labels=(("a", "1"),)), Label(labels=(("b", "1"),))


@pytest.mark.parametrize(
    ("acts", "which"),
    [
        ((LABEL, Delete()), 1),
        ((Delete(), LABEL), 0),
        ((LABEL, OTHER_LABEL), 0),
        ((LABEL, Hold()), 0),
        ((LABEL, OTHER_LABEL, Delete()), 2),
    ],
)
def test_a_label_waits_for_whatever_else_is_done_to_its_subject(acts: tuple[Label, ...], which: int) -> None:
    decisions = [Decision(f"p{at}", NODE, act, some_reason("Any")) for at, act in enumerate(acts)]
    settled = one_action_each(decisions)
    assert [at for at, each in enumerate(settled) if not isinstance(each.act, Hold)] == [which]


def gated(case: dict[str, object]) -> Inputs:
    """The pods that wait in a case of drains wait behind our gate."""
    inputs = DrainWorld(case).inputs
    gate = (LocalObjectReference(names.CAPACITY_GATE),)
    pods = tuple(
        each
        if each.node
        else msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, scheduling_gates=gate))
        for each in inputs.observed.pods
    )
    return msgspec.structs.replace(inputs, observed=msgspec.structs.replace(inputs.observed, pods=pods))


@pytest.mark.parametrize("waits", [True, False])
def test_a_node_whose_room_a_waiting_pod_is_let_onto_is_not_drained(waits: bool) -> None:
    nodes = {"a": {"pods": ["web 2"], "candidate": 900}, "b": {"pods": ["web 6"]}}
    made = planned(gated({"nodes": nodes, "waiting": ["web 4"] if waits else []}))
    begun = [each for each in made.decisions if isinstance(each.act, Taint) and each.act.key == names.DRAINING]
    assert [each.subject.name for each in begun] == ([] if waits else ["a"])
    lifted = [each.act.node for each in made.decisions if isinstance(each.act, Ungate)]
    assert lifted == (["a"] if waits else [])


def test_a_waiting_pod_is_let_onto_a_node_that_stays_where_one_has_room() -> None:
    nodes = {"a": {"pods": ["web 2"], "candidate": 900}, "b": {"pods": ["web 2"]}, "c": {"pods": ["web 5"]}}
    made = planned(gated({"nodes": nodes, "waiting": ["web 4"]}))
    assert [each.act.node for each in made.decisions if isinstance(each.act, Ungate)] == ["b"]
    begun = [each for each in made.decisions if isinstance(each.act, Taint) and each.act.key == names.DRAINING]
    assert [each.subject.name for each in begun] == ["a"]


def test_no_pod_is_evicted_to_the_room_that_a_waiting_pod_is_let_onto() -> None:
    nodes = {"a": {"pods": ["web 2"], "draining": 60}, "b": {"pods": ["web 4"]}}
    made = planned(gated({"nodes": nodes, "waiting": ["web 4"]}))
    assert [each.act.node for each in made.decisions if isinstance(each.act, Ungate)] == ["b"]
    assert not [each for each in made.decisions if isinstance(each.act, Evict)]


@pytest.mark.parametrize("first", range(0, DRAWN, AT_ONCE))
def test_a_plan_comes_of_any_cluster_and_any_policies_and_breaks_no_invariant(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        made = planned(Drawn(seed).inputs())
        subjects = [each.subject for each in made.decisions if not isinstance(each.act, Hold)]
        assert len(subjects) == len(set(subjects)), seed
