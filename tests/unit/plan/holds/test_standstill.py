"""Nodes that bear a taint of ours in a pool that no planner acts on: what is decided of them, and that every report
agrees: none announces a deletion that never comes."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model import names
from reconciler.model.bundle import FieldChange, PolicyChange
from reconciler.model.plan.decision import Decision, Label
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.observing import Observation, observes
from reconciler.plan.holds.standstill import REASONS
from reconciler.plan.impact.impact import with_impact
from reconciler.report import write
from reconciler.report.decision_text import conditions
from reconciler.report.explain.subject import about, parse_subject
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.sentences import sentence
from reconciler.report.status.overview import overview_document, overview_of
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.holds.standstill_stage import World, table
from tests.unit.plan.scaling.stage import POLICY
from tests.unit.report.status.test_status import SETTING

CASES = table()
Json = dict[str, Any]
FORMATS = ("text", "markdown", "html", "json", "junit", "sarif")
# How reports say that a node goes.
PROMISES = re.compile("[Ww]ill be deleted|[Tt]he node is deleted at|unless a pod arrives|has been draining since")


def decisions_of(scene: PlanningResult) -> tuple[Decision, ...]:
    found = (each for each in scene.plan.decisions if each.subject.kind in {"Node", "Pod"})
    return tuple(each for each in found if not isinstance(each.act, Label))


def reports(scene: PlanningResult) -> dict[str, str]:
    """Each format of `plan` and of `status`; and what `explain` says of each node, of the pool and its provisioner."""
    plan, status = plan_document(planned_of(SETTING, scene, None)), overview_document(overview_of(SETTING, scene))
    found = {f"plan {each}": write(plan, each, color=False) for each in FORMATS}
    found |= {f"status {each}": write(status, each, color=False) for each in FORMATS}
    subjects = [f"node/{each.name}" for each in scene.inputs.observed.nodes] + ["pool/a100"]
    subjects += [f"provisioner/{each.name}" for each in scene.inputs.desired.provisioners]
    for subject in subjects:
        answer = about(scene, parse_subject(subject))
        found[f"explain {subject}"] = "\n".join((answer.outcome, *(text for _, text in answer.rows)))
    return found


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    scene = World(case).scene()
    decided = decisions_of(scene)
    assert lines_of(decided) == case["does"]
    sentences = [sentence(each.reason) for each in decided]
    for words in case.get("says", []):
        assert any(words in each for each in sentences), sentences
    for where, text in reports(scene).items():
        for words in case.get("never", []):
            assert words not in text, where


def test_each_reason_is_shown_by_a_case() -> None:
    shown = {each.reason.code for case in CASES.values() for each in decisions_of(World(case).scene())}
    assert {each.__name__ for each in REASONS} <= shown


@pytest.mark.parametrize("name", CASES)
def test_no_report_announces_that_a_node_goes_which_stands_still(name: str) -> None:
    case = CASES[name]
    scene = World(case).scene()
    still = {each for each, one in scene.standstills.items() if not one.goes_on_alone}
    if not still:
        pytest.skip("none stands still but for a freeze")
    for node in still:
        answer = about(scene, parse_subject(f"node/{node}"))
        assert not PROMISES.search("\n".join((answer.outcome, *(text for _, text in answer.rows)))), node
    if still == {each.name for each in scene.inputs.observed.nodes if each.is_being_removed}:
        for where, text in reports(scene).items():
            assert not PROMISES.search(text), where


def test_of_a_pool_that_is_only_observed_nothing_comes_as_things_stand() -> None:
    case = CASES["a node marked before its pool went to mode Observe is not deleted, and that is said"]
    texts = reports(World(case).scene())
    assert "as things stand" not in texts["plan text"]
    assert "Nodes leaving and arriving" not in texts["status text"]
    assert "Z (in" not in texts["status text"]
    assert "marked since" not in texts["plan text"]
    assert "Held: b has the taint" in texts["explain node/b"]
    assert "to stop it" not in {label for label, _ in about(World(case).scene(), parse_subject("node/b")).rows}
    assert "2 nodes marked, but not deleted in the current state" in texts["explain pool/a100"]
    assert "2 nodes marked, but not deleted in the current state" in texts["explain provisioner/a100"]


def test_nodes_whose_taints_stay_are_one_item_a_pool_and_taint() -> None:
    nodes = {f"m{number}": {"marked": 600 + number} for number in range(7)} | {"d": {"draining": 60}}
    case = {"nodes": {"a": {"pods": ["web 8"]}, **nodes}, "pool": {"mode": "Observe"}, "policy": "none"}
    text = reports(World(case).scene())["plan text"]
    assert "! 7 Nodes of a100" in text
    assert "m0, m1, m2, m3, m4 and 2 more" in text
    assert "! Node/d" in text
    assert text.count("has the taint") == 2


OF_MODES: dict[str, Any] = {
    "nodes": {"a": {"pods": ["web 5"]}, "b": {"marked": 600}, "c": {"pods": ["web 1"], "draining": 60}},
    "keep": {"minGPUUtilizationPercent": 80, "minSize": 1},
}


def of_mode(mode: str) -> PlanningResult:
    return World({**OF_MODES, "pool": {"mode": mode}}).scene()


def switched(before: str, after: str) -> tuple[str, Json]:
    """The report of a pull request that changes the mode of the pool: as text, and as JSON."""
    field = FieldChange("mode", before, after, POLICY)
    change = PolicyChange("GpuPool", "a100", "change", POLICY, (field,))
    planned = planned_of(SETTING, of_mode(after), Compared(of_mode(before), (change,)))
    document = plan_document(planned)
    return write(document, "text", color=False), document.payload


def test_what_a_pool_does_once_it_is_acted_on_comes_because_of_the_change_of_its_mode() -> None:
    text, payload = switched("Observe", "Enforce")
    assert "also without this change" not in text
    assert "mode: Observe -> Enforce  scales down 1 of 3 nodes, drains 1 of 3 nodes" in text
    assert {each["fate"]: (each["cause"], each["nodes"]) for each in payload["consequences"]} == {
        "scaled": ("change", ["b"]),
        "drained": ("change", ["c"]),
    }
    cost = payload["impact"]["micro_dollars_per_hour"]
    assert cost["now"] == cost["before"] == cost["after"] + 2 * 21_960_000


def test_what_a_pool_does_no_longer_is_spared_by_the_change_of_its_mode() -> None:
    text, payload = switched("Enforce", "Observe")
    assert "no longer happens with this change" in text
    assert "mode: Enforce -> Observe  spares 2 nodes" in text
    assert {(each["cause"], each["fate"]) for each in payload["consequences"]} == {
        ("spared", "scaled"),
        ("spared", "drained"),
    }
    cost = payload["impact"]["micro_dollars_per_hour"]
    assert cost["now"] == cost["after"] == cost["before"] + 2 * 21_960_000


@pytest.mark.parametrize(
    ("supposed", "told"),
    [
        ({Observation("a", by_mode=True): 2}, [(2, "GpuPool/a were in mode Enforce")]),
        ({Observation("a", is_unadopted=True): 1}, [(1, "NodePool/a, which reconciler did not create, were adopted")]),
        ({Observation("a", environment="qa"): 1}, [(1, "NodePool/a did not belong to environment qa")]),
        (
            {
                Observation("a", by_mode=True): 2,
                Observation("b", by_mode=True): 3,
                Observation("c", is_unadopted=True): 1,
            },
            [
                (5, "their GpuPools were in mode Enforce"),
                (1, "NodePool/c, which reconciler did not create, were adopted"),
            ],
        ),
        (
            {Observation(each, by_mode=True, is_unadopted=True): 1 for each in "ab"},
            [(2, "their GpuPools were in mode Enforce and their NodePools, created by someone else, were adopted")],
        ),
        (
            {Observation(each, environment=each): 1 for each in "ab"},
            [(2, "their NodePools were not owned by other environments")],
        ),
    ],
)
def test_what_would_have_to_be_is_told_by_its_cause(supposed: dict[Observation, int], told: list[Any]) -> None:
    assert list(conditions(supposed)) == told


THEIRS = CASES["a node marked before its NodePool turned out to be someone else's names the NodePool and not the mode"]


def test_every_report_names_the_nodepool_of_someone_else_and_not_the_mode() -> None:
    nodes = {"a": {"pods": ["web 5"]}, "b": {}, "c": {"pods": ["web 1"]}}
    texts = reports(World({**THEIRS, "nodes": nodes}).scene())
    cause = "NodePool/a100 was not created by reconciler and is not adopted"
    clause = "NodePool/a100, which reconciler did not create, were adopted"
    for each in ("text", "markdown", "html"):
        assert f"(suppressed: {cause})" in texts[f"plan {each}"], each
        assert f"2 suppressed (would apply if {clause})" in texts[f"plan {each}"], each
        assert f"2 suppressed (would apply if {clause})" in texts[f"status {each}"], each
        assert f"Pool a100 is only observed: {cause}." in texts[f"status {each}"], each
    decisions = json.loads(texts["plan json"])["decisions"]
    assert {each["observed_because"] for each in decisions if each["would"]} == {cause}
    assert [each["would"] for each in json.loads(texts["status json"])["leaving"]] == [True, True]
    assert {each["observed_because"] for each in json.loads(texts["status json"])["leaving"]} == {cause}
    assert f"Would apply if {clause}: " in texts["explain node/b"]
    assert f"Would apply if {clause}: " in texts["explain pool/a100"]


def test_a_hold_in_a_pool_that_is_only_observed_is_told_as_what_would_be_waited_for() -> None:
    nodes = {
        "a": {"pods": ["web 1"], "imagined": 9000},
        "b": {"pods": ["web 1"], "imagined": 8000},
        "c": {"pods": ["web 5"]},
    }
    limits = {"maxDrainParallelism": 1, "maxScaleDownParallelism": 1}
    texts = reports(World({"nodes": nodes, "policy": limits, "pool": {"mode": "Observe"}}).scene())
    assert ". Node/b (suppressed)" in texts["plan text"]
    assert ". Node/b (suppressed)" in texts["status text"]
    assert "would apply if GpuPool/a100 were in mode Enforce: the drain of b waits" in texts["plan sarif"]
    assert "Would apply if GpuPool/a100 were in mode Enforce: Waiting: the drain of b waits" in texts["explain node/b"]


NODES = st.fixed_dictionaries(
    {},
    optional={
        "marked": st.sampled_from([-3_600, -30, 20, 600]),
        "hard": st.booleans(),
        "draining": st.sampled_from([10, 300, 4_000]),
        "candidate": st.sampled_from([10, 900]),
        "pods": st.sampled_from([["web 1"], ["web 8"], ["big 3 leaving"]]),
        "cordoned": st.booleans(),
        "disrupted": st.booleans(),
        "unready": st.booleans(),
        "frozen": st.sampled_from([-5, 900]),
        "opted_out": st.booleans(),
        "labelled": st.booleans(),
        "taints": st.just([names.ARRIVING]),
    },
)
WORLDS = st.fixed_dictionaries(
    {
        "nodes": st.dictionaries(st.sampled_from(list("abcdefg")), NODES, min_size=1),
        "pool": st.fixed_dictionaries(
            {},
            optional={
                "mode": st.sampled_from(["Observe", "Enforce"]),
                "suspend": st.booleans(),
                "adopt": st.booleans(),
            },
        ),
        "node_pool": st.sampled_from([{}, {"theirs": True}, {"environment": "staging"}, {"frozen": 900}]),
        "policy": st.sampled_from([{}, {"suspend": True}, {"poolNames": ["*"]}]),
        "elsewhere": st.booleans(),
    },
    optional={
        "keep": st.sampled_from(
            [{"minGPUUtilizationPercent": 50, "minSize": 1}, {"minSize": 3}, {"suspend": True}, {"warmNodes": 1}]
        ),
        "undeclared": st.just(["a100"]),
        "unread": st.sampled_from([["pods"], ["leases.coordination.k8s.io"], ["nodeclaims.karpenter.sh"]]),
    },
)


def drawn(case: dict[str, Any]) -> dict[str, Any]:
    """A pool that nobody declares has no provisioner and no drain policy."""
    if "undeclared" not in case:
        return case
    return {key: value for key, value in case.items() if key != "keep"} | {"policy": "none"}


@settings(max_examples=80, deadline=None)
@given(WORLDS)
def test_each_node_that_stands_still_has_a_hold_and_no_time_at_which_it_goes(case: dict[str, Any]) -> None:
    scene = World(drawn(case)).scene()
    decided = {each.subject.name: each for each in scene.plan.decisions if each.subject.kind == "Node"}
    departed = with_impact(scene).scene
    for name, standstill in scene.standstills.items():
        assert name in decided, name
        answer = about(scene, parse_subject(f"node/{name}"))
        assert "Nothing is planned" not in answer.outcome, name
        if standstill.goes_on_alone:
            continue
        assert not PROMISES.search("\n".join((answer.outcome, *(text for _, text in answer.rows)))), name
        for each in departed.plan.consequences:
            own = each.only((name,))
            assert own is None or (own.cause == "change" and own.first_at is None), name
            assert own is None or observes(scene.inputs, each.pool), name


@settings(max_examples=30, deadline=None)
@given(WORLDS)
def test_the_same_planner_decides_once_about_a_node_that_stands_still(case: dict[str, Any]) -> None:
    scene = World(drawn(case)).scene()
    keys = [(each.planner, each.subject) for each in scene.plan.decisions if each.subject.name in scene.standstills]
    assert len(keys) == len(set(keys))
