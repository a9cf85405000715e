"""Why a node is a candidate for a drain or not; and what is said to make it one, done, makes it one."""

from collections import Counter
from typing import Any

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import Taint
from reconciler.model.plan.evaluation import DrainReport
from reconciler.plan.drain.codes.blockers import (
    BLOCKERS,
    ELIGIBILITY,
    GangWithoutPlace,
    IsDestination,
    OthersTurn,
    PodBudgetTaken,
    PodWithoutPlace,
)
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.nodes.ownership import CordonedByOthers, DisruptedByKarpenter, DriverUpgrade, NodeOptedOut
from reconciler.plan.reasons import Declared, code_of
from reconciler.report.explain.about import ExplainedObject, Explanation
from reconciler.report.explain.counterfactuals.changes import EDIT_RULES, flipped, weighed_again
from reconciler.report.explain.node import changes_of
from reconciler.report.explain.subject import about
from tests.unit.plan.drain.stage import World, tables

CASES = tables()


def asked(case: dict[str, Any], node: str, kind: str = "node", namespace: str = "") -> dict[str, list[str]]:
    world = World(case)
    scene = PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())
    answer: Explanation = about(scene, ExplainedObject(kind, node, namespace))
    found: dict[str, list[str]] = {}
    for label, text in answer.rows:
        found.setdefault(label, []).append(text)
    return found


def test_a_candidate_says_since_when_it_is_one() -> None:
    (told,) = asked({"nodes": {"a": {"pods": ["web 2"], "candidate": 60}, "b": {"pods": ["web 5"]}}}, "a")["drained"]
    assert told.startswith(
        "candidate: a is unneeded: its pods fit on b. The drain can start when the node has been a candidate for 10 "
        "min. Candidate since"
    )


def test_one_that_is_none_says_why_and_what_would_make_it_one() -> None:
    policy = {"utilizationThresholdPercent": 49}
    rows = asked({"nodes": {"a": {"pods": ["web 4"]}, "b": {"pods": ["web 4"]}}, "policy": policy}, "a")
    assert rows["drained"][0].startswith(
        "no: 4 of 8 nvidia.com/gpu of a are requested, 50 %: more than the threshold of 49 %."
    )
    assert rows["drained if"] == ["utilizationThresholdPercent of DrainPolicy/drains is 50 or more"]


def test_all_that_stands_in_the_way_is_told_together() -> None:
    apps = {"web": {"owner": "none", "budget": 0, "volumes": ["emptyDir"]}}
    policy = {"utilizationThresholdPercent": 24}
    case = {"nodes": {"a": {"pods": ["web 2"]}, "b": {"pods": ["job 5"]}}, "apps": apps, "policy": policy}
    (told,) = asked(case, "a")["drained if"]
    assert told.split(" and ") == [
        "utilizationThresholdPercent of DrainPolicy/drains is 25 or more",
        "Pod/team/web-0 carries cluster-autoscaler.kubernetes.io/safe-to-evict: true",
        "PodDisruptionBudget/team/web allows a disruption",
    ]


def test_where_nothing_near_would_do_nothing_is_said() -> None:
    """No node like this one has its label."""
    apps = {"web": {"selects": {"zone": "x"}}}
    rows = asked({"nodes": {"a": {"pods": ["web 3"]}, "b": {"pods": ["job 6"]}}, "apps": apps}, "a")
    assert rows["drained"][0].startswith("no: no remaining node has room for Pod/team/web-0")
    assert "drained if" not in rows


def test_one_that_was_tried_in_vain_says_when_and_since_when() -> None:
    nodes: dict[str, Any] = {"a": {"pods": ["web 3"]}, "b": {"pods": ["web 6"]}}
    assert asked({"nodes": nodes}, "a")["last tried"] == [
        "search for places for the pods at 2026-11-02T08:00:00Z, without success"
    ]
    again = asked({"nodes": nodes, "tried": {"a": [60, 600]}}, "a")["last tried"]
    assert again == [
        "search for places for the pods at 2026-11-02T08:00:00Z, without success since 2026-11-02T07:50:00Z"
    ]
    assert "last tried" not in asked({"nodes": nodes}, "b")


def test_where_nobody_looked_it_says_what_was_found_before() -> None:
    nodes: dict[str, Any] = {
        "a": {"pods": ["web 2"], "candidate": 60},
        "b": {"pods": ["job 8"], "draining": 30},
        "c": {"pods": ["web 5"]},
    }
    (told,) = asked({"nodes": nodes, "tried": {"a": [60, 600]}}, "a")["last tried"]
    assert told == (
        "search for places for the pods at 2026-11-02T07:59:00Z, without success since 2026-11-02T07:50:00Z: "
        "no remaining node has room for Pod/team/web-0 (resources: 1 node of a100 p4d), so the pod stays on a."
    )


def test_of_a_pool_that_is_not_named_nothing_is_said() -> None:
    assert "drained" not in asked({"nodes": {"a": {"pods": ["web 2"]}}, "policy": "none"}, "a")


@pytest.mark.parametrize("limit", [{"clusterMin": {"nvidia.com/gpu": 24}}, {"maxDrainParallelism": 1}])
def test_of_candidates_that_cannot_all_be_drained_none_is_promised_its_drain(limit: dict[str, Any]) -> None:
    nodes: dict[str, Any] = {name: {"pods": ["web 1"], "candidate": 60} for name in ("a", "b", "c")}
    case = {"nodes": {**nodes, "d": {"pods": ["job 4"]}}, "policy": limit}
    texts = [asked(case, name)["drained"][0] for name in nodes]
    promised = "drain can start when the node has been a candidate for 10 min"
    assert [text.partition(" The ")[2].partition(".")[0] for text in texts] == [promised] * 3
    due = {
        **case,
        "nodes": {name: {**said, "candidate": 900} for name, said in nodes.items()} | {"d": case["nodes"]["d"]},
    }
    planned = World(due).planned().decisions
    assert len([each for each in planned if isinstance(each.act, Taint) and each.act.value is not None]) == 1


@pytest.mark.parametrize("node", [{}, {"candidate": 60}, {"draining": 30}], ids=str)
@pytest.mark.parametrize(("policy", "told"), [({}, "600 s, the maximum of DrainPolicy/drains"), ("none", "")])
def test_an_invalid_checkpoint_is_told_whether_the_node_drains_or_not(
    node: dict[str, int], policy: Any, told: str
) -> None:
    nodes = {"a": {"pods": ["web 2"], **node}, "b": {"pods": ["job 5"]}}
    for written, is_valid in (("soon", False), ("120", False), ("120s", True), ("24h", True)):
        case = {"nodes": nodes, "apps": {"web": {"checkpoint": written}}, "policy": policy}
        texts = asked(case, "web-0", "pod", "team").get("checkpoint", [])
        assert len(texts) == (not is_valid)
        assert all(f"checkpoint: {written} is not a duration" in each and each.endswith(told) for each in texts)
    assert "checkpoint" not in asked({"nodes": nodes, "policy": policy}, "web-0", "pod", "team")


@pytest.mark.parametrize("since", [1, 30, 400])
def test_one_that_is_being_drained_is_no_node_that_is_not_drained(since: int) -> None:
    rows = asked({"nodes": {"a": {"pods": ["web 2"], "draining": since}, "b": {"pods": ["web 5"]}}}, "a")
    assert rows["drained"][0].startswith("in progress: a has been draining since")
    assert "drained if" not in rows, "removing the taint would end the drain"


def test_of_a_suspended_policy_it_is_said_that_it_is_suspended() -> None:
    case = {"nodes": {"a": {"pods": ["web 2"]}, "b": {"pods": ["web 5"]}}, "policy": {"suspend": True}}
    rows = asked({**case, "keep": {"suspend": True}}, "a")
    assert rows["drained"] == ["no: DrainPolicy/drains is suspended, policies/a100.yaml:23 @ 4c1f9e2"]
    assert "DrainPolicy/drains, suspended, " in rows["policies"][0]
    assert "NodeProvisioner/a100, suspended, " in rows["policies"][0]


def test_a_suspended_policy_beside_an_active_one_is_not_told() -> None:
    others = {"an-older-one": {"poolNames": ["*"], "suspend": True}}
    rows = asked({"nodes": {"a": {"pods": ["web 2"]}, "b": {"pods": ["web 5"]}}, "others": others}, "a")
    assert [text.partition(":")[0] for text in rows["drained"]] == ["candidate"]
    assert "DrainPolicy/drains " in rows["policies"][0]
    assert "suspended" not in rows["policies"][0]


SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict: true"
BARE = {"bare": {"owner": "none"}}


def bare(pods: int) -> dict[str, Any]:
    """A node with so many pods that nobody would make anew, and another with room for all of them."""
    nodes = {"a": {"pods": ["bare 0"] * pods}, "b": {"pods": ["job 5"]}}
    return {"nodes": nodes, "apps": BARE}


def test_all_pods_that_keep_it_are_named_each_with_its_reason() -> None:
    apps: dict[str, Any] = {
        "web": {"budget": 0},
        "app": {"safe": "false"},
        "log": {"volumes": ["emptyDir"]},
        "big": {"selects": {"zone": "x"}},
    }
    nodes = {"a": {"pods": ["web 1", "job 0", "app 0", "log 0", "big 1"]}, "b": {"pods": ["job 5"]}}
    rows = asked({"nodes": nodes, "apps": apps}, "a")
    assert sorted(rows["kept by"]) == [
        (
            "Pod/team/app-0 has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: false, so the pod "
            "stays on a."
        ),
        "Pod/team/log-0 uses local storage (volume scratch), so the pod stays on a.",
        "PodDisruptionBudget/team/web of Pod/team/web-0 allows no disruption now, so the pod stays on a.",
        (
            "no remaining node has room for Pod/team/big-0 (selection: 1 node of a100 p4d.24xlarge), so the pod stays "
            "on a."
        ),
    ]


def test_one_that_was_told_already_is_not_told_again() -> None:
    rows = asked(bare(1), "a")
    assert rows["drained"][0].startswith("no: Pod/team/bare-0 has no controller")
    assert "kept by" not in rows
    assert rows["drained if"] == [f"Pod/team/bare-0 carries {SAFE}"]


def test_pods_that_need_the_same_edit_are_told_together() -> None:
    rows = asked(bare(7), "a")
    titles = [f"Pod/team/bare-{number}" for number in range(7)]
    assert rows["kept by"] == [
        f"{each} has no controller that would recreate the pod, so the pod stays on a." for each in titles
    ]
    assert rows["drained if"] == [f"each of these 7 pods ({', '.join(titles)}) carries {SAFE}"]


def test_of_many_the_first_are_named_and_the_others_counted() -> None:
    rows = asked(bare(25), "a")
    assert len(rows["kept by"]) == 11
    assert rows["kept by"][-1] == "and 15 more"
    (told,) = rows["drained if"]
    assert told.startswith("each of these 25 pods (Pod/team/bare-0, Pod/team/bare-1, Pod/team/bare-10, ")
    assert told.endswith(f", 15 more) carries {SAFE}")


@pytest.mark.parametrize("pods", [1, 6, 7, 30])
def test_what_is_told_of_many_pods_does_make_it_a_candidate(pods: int) -> None:
    world = World(bare(pods))
    (weighed,) = (each for each in world.planned().report(DrainReport).weighed if each.node == "a")
    after, told = flipped(world.inputs, weighed)
    assert len(told) == 1
    assert after is not None
    again = weighed_again(after, "a")
    assert again is not None
    assert again.is_candidate
    annotated = [pod for pod in after.observed.pods if pod.metadata.annotations.safe_to_evict == "true"]
    assert [pod.node for pod in annotated] == ["a"] * pods


def test_budgets_that_allow_nothing_are_told_together() -> None:
    apps = {f"app{number}": {"budget": 0} for number in range(7)}
    nodes = {"a": {"pods": [f"app{number} 0" for number in (*range(7), 0)]}, "b": {"pods": ["job 5"]}}
    rows = asked({"nodes": nodes, "apps": apps}, "a")
    titles = ", ".join(f"PodDisruptionBudget/team/app{number}" for number in range(7))
    assert rows["drained if"] == [f"each of these 7 PodDisruptionBudgets ({titles}) allows a disruption"]
    assert len(rows["kept by"]) == 8


def test_what_others_take_of_a_budget_first_keeps_it_as_in_the_plan() -> None:
    nodes = {"a": {"pods": ["web 1"]}, "b": {"pods": ["web 1", "bare 1"]}, "c": {"pods": ["job 4"]}}
    first, second = asked({"nodes": nodes, "apps": {"web": {"budget": 1}} | BARE}, "b")["kept by"]
    assert first == "Pod/team/bare-0 has no controller that would recreate the pod, so the pod stays on b."
    assert second.startswith(
        "PodDisruptionBudget/team/web of Pod/team/web-1 allows only the evictions of pods that leave"
    )


def test_pods_for_which_no_room_is_left_are_named_too() -> None:
    nodes = {"a": {"pods": ["web 1", "web 1", "web 1"]}, "b": {"pods": ["job 7"]}}
    rows = asked({"nodes": nodes}, "a")
    assert rows["drained"][0].startswith(
        "no: no remaining node has room for Pod/team/web-0 (not together with the other pods: 1 node"
    )
    assert [told.partition(" (")[0] for told in rows["kept by"]] == [
        "no remaining node has room for Pod/team/web-0",
        "no remaining node has room for Pod/team/web-1",
    ]
    assert "(resources: 1 node of a100 p4d.24xlarge)" in rows["kept by"][1]


def test_all_that_keeps_a_gang_is_told() -> None:
    """One of its pods runs there, the others elsewhere."""
    nodes = {"a": {"pods": ["web 1"]}, "b": {"pods": ["app 1", "big 4"]}, "c": {"pods": ["bare 1", "job 4"]}}
    apps: dict[str, Any] = {
        "web": {"claim": "one", "volumes": ["emptyDir"]},
        "app": {"claim": "two", "safe": "false"},
        "bare": {"claim": "three", "owner": "none"},
    }
    claims = {each: {"count": 1, "gangRef": "llama"} for each in ("one", "two", "three")}
    rows = asked({"nodes": nodes, "apps": apps, "claims": claims}, "a")
    unsafe = (
        "Pod/team/app-0 has the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: false, so the pod stays on b"
    )
    lone = "Pod/team/bare-0 has no controller that would recreate the pod, so the pod stays on c"
    gang = "Pod/team/web-0 is in gang team/llama, whose pods move only together"
    own = "Pod/team/web-0 uses local storage (volume scratch), so the pod stays on a."
    assert rows["kept by"] == [*(f"{gang} ({told}), so the pod stays on a." for told in (unsafe, lone)), own]


def test_of_a_node_that_is_being_emptied_those_are_told_that_are_not_asked() -> None:
    nodes = {"a": {"pods": ["web 1", "job 1", "bare 1"], "draining": 60}, "b": {"pods": ["job 5"]}}
    rows = asked({"nodes": nodes, "apps": {"web": {"budget": 0}} | BARE}, "a")
    assert sorted(rows["kept by"]) == [
        "Pod/team/bare-0 has no controller that would recreate the pod, so the pod stays on a.",
        "PodDisruptionBudget/team/web of Pod/team/web-0 allows no disruption now, so the pod stays on a.",
    ]


KEPT: set[Declared] = {*ELIGIBILITY, *BLOCKERS, DisruptedByKarpenter, DriverUpgrade, CordonedByOthers, NodeOptedOut}


def test_each_reason_for_which_a_node_is_none_has_its_change() -> None:
    assert set(EDIT_RULES) == KEPT, "each code needs an entry in EDIT_RULES of counterfactuals/changes.py"


@pytest.mark.parametrize(
    "app",
    [
        {"owner": "batch.volcano.sh/v1alpha1/Job"},
        {"owner": "none"},
        {"safe": "false"},
        {"volumes": ["emptyDir"]},
    ],
    ids=str,
)
def test_a_node_with_many_pods_that_block_it_alike_has_a_change(app: dict[str, Any]) -> None:
    """With more pods than the search has rounds."""
    case = {"nodes": {"a": {"pods": ["web 0"] * 25}, "b": {"pods": ["job 5"]}}, "apps": {"web": app}}
    world = World(case)
    (weighed,) = (each for each in world.planned().report(DrainReport).weighed if each.node == "a")
    assert not weighed.is_candidate
    after, _ = flipped(world.inputs, weighed)
    assert after is not None


@pytest.mark.parametrize("code", sorted(map(code_of, KEPT)))
def test_what_is_said_to_make_it_a_candidate_does(code: str) -> None:
    """In some case each change alone is enough, or it and those behind it are."""
    for case in CASES.values():
        world = World(case)
        for weighed in (
            world.planned().report(DrainReport).weighed if not case.get("scales") or code == OthersTurn.__name__ else ()
        ):
            if weighed.reason.code == code and not weighed.is_candidate:
                after, told = flipped(world.inputs, weighed)
                if after is not None:
                    again = weighed_again(after, weighed.node)
                    assert again is not None
                    assert again.is_candidate
                    assert changes_of(world.inputs, weighed) == " and ".join(each.words for each in told)
                    return
    pytest.fail(f"no case shows a change that lifts {code}", pytrace=False)


MOST_ALIKE = 12  # nodes of one reason, of a case that has many


@pytest.mark.parametrize("name", CASES)
def test_a_change_lifts_what_it_is_told_for(name: str) -> None:
    """Or another stands in the way then; never is a change told after which the node is none."""
    world = World(CASES[name])
    asked = Counter[str]()
    for weighed in world.planned().report(DrainReport).weighed:
        asked[weighed.reason.code] += 1
        if asked[weighed.reason.code] > MOST_ALIKE:
            continue
        line = EDIT_RULES.get(type(weighed.reason.facts)) if not weighed.is_candidate else None
        edit = line(world.inputs, weighed) if line is not None else None
        if edit is None:
            continue
        first = weighed_again(edit.inputs, weighed.node)
        if first is not None and first.is_candidate:
            assert changes_of(world.inputs, weighed) == edit.change.words
        elif type(weighed.reason.facts) not in MAY_NOT_DO:
            assert first is None or first.reason != weighed.reason


# A node with room is no place for what selects others, and need not be chosen; what goes first may take a budget again.
MAY_NOT_DO = {PodWithoutPlace, GangWithoutPlace, IsDestination, PodBudgetTaken}
