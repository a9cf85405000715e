"""`explain` answers from the decisions that `plan` prints: each decision of each golden case is told of its subject."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.consequence import Consequence, Hindrance, Share, summed
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.capacity.requests import is_labelled_as_smart
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.impact.impact import with_impact
from reconciler.plan.planner import plan
from reconciler.plan.scaling.reasons import PLANNER as SCALES
from reconciler.report.explain.about import Explanation, UnknownSubject
from reconciler.report.explain.subject import answer, parse_subject
from reconciler.report.sentences import sentence
from tests.unit.plan.drain import stage as drain_stage
from tests.unit.plan.guards import stage as guards_stage
from tests.unit.plan.guards.test_limits import TABLES as GUARDED
from tests.unit.plan.manifests import stage as manifests_stage
from tests.unit.plan.manifests.test_planner import CASES as MANIFESTS
from tests.unit.plan.scaling import stage as scaling_stage
from tests.unit.plan.scaling.test_scaling import CASES as SCALING
from tests.unit.plan.smart_pods import stage as smart_stage
from tests.unit.plan.smart_pods.test_smart_pods import CASES as SMART

NOTHING = ("Nothing is planned", "nothing is to be done", "Nothing is decided")
PER_CASE = 12  # subjects: of more in one case, those of each reason


def scenes() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    yield from ((name, drain_stage.World, case) for name, case in drain_stage.tables().items())
    yield from ((name, scaling_stage.World, case) for name, case in SCALING.items())
    yield from ((name, smart_stage.SmartWorld, case) for name, case in SMART.items())
    guarded = [case for table in (*GUARDED.values(), guards_stage.table("frozen.yaml")) for case in table.items()]
    yield from ((name, guards_stage.World, case) for name, case in guarded)


def scene_of(world: Any) -> PlanningResult:
    inputs: Inputs = world.inputs
    made: Plan = world.planned()
    return with_impact(PlanningResult(inputs, Fleet(inputs.observed), made)).scene


def told_of(scene: PlanningResult, decision: Decision) -> list[str]:
    """What is missing where a person asks about the subject of a decision, and about its pool."""
    found = list(_missing(answer(scene, parse_subject(decision.subject.title)), decision))
    if decision.pool and decision.subject.kind in {"Node", "NodePool"}:
        found += _missing(answer(scene, parse_subject(f"pool/{decision.pool}")), decision)
    return found


def _missing(about: Explanation, decision: Decision) -> Iterator[str]:
    if decision not in about.decisions:
        yield f"{about.title} does not name {decision.subject.title}: {decision.reason.code}"
    if any(words in about.outcome for words in NOTHING):
        yield f"{about.title} says {about.outcome}, and {decision.subject.title} has {decision.reason.code}"
    # A node that scaling takes away has a shorter sentence, with the time; a pool tells the first of those alike.
    is_short = decision.planner == SCALES and decision.subject.kind == "Node"
    is_one = not about.title.startswith("pool/")
    told = " ".join((about.outcome, *(text for _, text in about.rows)))
    if is_one and not is_short and sentence(decision.reason) not in told:
        yield f"{about.title} does not say: {sentence(decision.reason)}"


def one_of_each(decisions: tuple[Decision, ...]) -> list[Decision]:
    """All, or where there are many one for each reason, kind and pool."""
    if len(decisions) <= PER_CASE:
        return list(decisions)
    alike = {(each.reason.code, each.subject.kind, each.pool, type(each.act)): each for each in reversed(decisions)}
    return list(alike.values())


WORLDS: dict[str, Any] = {
    "drain": drain_stage.World,
    "scaling": scaling_stage.World,
    "smart": smart_stage.SmartWorld,
    "guards": guards_stage.World,
}


@pytest.mark.parametrize("world", WORLDS)
def test_each_decision_is_told_where_its_subject_is_asked_about(world: str) -> None:
    wrong = []
    for name, of, case in scenes():
        if of is WORLDS[world]:
            scene = scene_of(of(case))
            for decision in one_of_each(scene.plan.decisions):
                wrong += [f"{name}: {each}" for each in told_of(scene, decision)]
    assert not wrong


def test_each_waiting_pod_is_told_what_it_waits_for() -> None:
    wrong = []
    for name, of, case in scenes():
        if of is smart_stage.SmartWorld:
            scene = scene_of(of(case))
            for pod in scene.inputs.observed.pods:
                is_waiting = not pod.node and pod.counts and not pod.metadata.leaving and not is_labelled_as_smart(pod)
                told = answer(scene, parse_subject(f"pod/{pod.title}")) if is_waiting else None
                if told is not None and not told.decisions and "waits for" not in told.outcome:
                    wrong.append(f"{name}: {told.title} says {told.outcome}")
    assert not wrong


def test_each_decision_about_a_manifest_is_told_where_the_object_is_asked_about() -> None:
    wrong = []
    for name, case in MANIFESTS.items():
        inputs = manifests_stage.inputs_of(case)
        fleet = Fleet(inputs.observed)
        scene = with_impact(PlanningResult(inputs, fleet, plan(inputs, fleet))).scene
        for decision in scene.plan.decisions:
            wrong += [f"{name}: {each}" for each in told_of(scene, decision)]
    assert not wrong


TWO_GO = {
    "nodes": {"a": {"pods": ["web 1"]}, "b": {"pods": ["web 2"]}, "c": {"pods": ["big 5"]}},
}


def answer_to(case: dict[str, Any], subject: str) -> Explanation:
    return answer(scene_of(drain_stage.World(case)), parse_subject(subject))


def test_a_pool_whose_nodes_are_to_go_says_so_with_a_row_for_each_reason() -> None:
    told = answer_to(TWO_GO, "pool/a100")
    assert told.outcome == "Of its 3 nodes, 2 are drained."
    assert [label for label, _ in told.rows].count("decided") == 1
    assert (
        "decided",
        f"2 Nodes, such as a: {sentence(told.decisions[0].reason)} policies/a100.yaml:23 @ 4c1f9e2",
    ) in told.rows


def test_a_pod_is_told_of_the_drain_of_its_node_before_and_while_it_happens() -> None:
    assert answer_to(TWO_GO, "pod/team/web-0").outcome == (
        "The node of the pod is not needed, so from 08:10Z on, the pods on the node are evicted, and then the node "
        "is deleted."
    )
    draining = {"nodes": {**TWO_GO["nodes"], "a": {"pods": ["web 1"], "draining": 60}}}
    assert answer_to(draining, "pod/team/web-0").outcome.startswith("Pod/team/web-0 is evicted from a:")
    assert ("evicts", "Pod/team/web-0") in answer_to(draining, "node/a").rows


def test_what_holds_up_one_node_is_not_counted_in_nodes() -> None:
    scene = scene_of(guards_stage.World({"pools": {"a100": {"nodes": 2}}}))
    held = Consequence("a100", "a100", "change", "blocked", ("a100-0", "a100-1"), 16, 0, 2, 0)
    shares = (Share(8, 0, 1, 0, 0, (Hindrance("do-not-disrupt", "annotation"),)),) * 2
    held = summed(held, zip(held.nodes, shares, strict=True))
    scene = msgspec.structs.replace(scene, plan=msgspec.structs.replace(scene.plan, consequences=(held,)))
    assert "on 2 nodes" not in answer(scene, parse_subject("node/a100-0")).outcome
    assert "(do-not-disrupt)" in answer(scene, parse_subject("node/a100-0")).outcome
    assert "2 nodes because of do-not-disrupt" in " ".join(
        text for _, text in answer(scene, parse_subject("pool/a100")).rows
    )


def test_a_drain_policy_can_be_asked_about() -> None:
    told = answer_to(TWO_GO, "drainpolicy/drains")
    assert ("candidates", "2 of 3 nodes of a100") in told.rows
    assert ("drains", "2 nodes of a100, with 2 pods, from 08:10Z on") in told.rows


def test_what_is_nowhere_is_said_to_be_nowhere() -> None:
    with pytest.raises(UnknownSubject, match="no policy and no decision of this plan is about drainpolicy/other"):
        answer_to(TWO_GO, "drainpolicy/other")
