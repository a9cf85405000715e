"""What `explain node/...` and `status` say of pressure."""

import json
from typing import Any

from reconciler.fleet.fleet import Fleet
from reconciler.plan.files.dump import PlanningResult
from reconciler.report import write
from reconciler.report.explain.node import about_node
from reconciler.report.status.overview import overview_document, overview_of
from reconciler.report.status.pressure import pressed_node_json, pressed_node_words, pressed_of
from tests.unit.plan.pressure.stage import World
from tests.unit.report.plans.samples import ALONE

PODS = {"p": {"has": 3, "load": 0.25}, "q": {"has": 5, "lacks": 0.5}, "r": {"has": 1, "plain": True}}
NODES = {"a": {"system": 1, "pods": PODS}, "b": {}}
LABELS = {"pressure policy", "reserved", "reserved by", "pressure", "relieved if", "evicts"}
PRESSED = "cpu: 1800m above its watermark and 500m requested and not there"


def scene_of(case: dict[str, Any]) -> PlanningResult:
    world = World(case)
    return PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())


def rows_of(case: dict[str, Any], node: str = "a") -> list[tuple[str, str]]:
    rows = about_node(scene_of(case), node).rows
    return [(label, text.partition(" (")[0]) for label, text in rows if label in LABELS]


def test_a_node_under_pressure_tells_what_is_reserved_and_by_whom() -> None:
    assert rows_of({"nodes": NODES}) == [
        ("evicts", "Pod/team/p"),
        ("pressure policy", "PressurePolicy/watch, migration Auto policies/a100.yaml:23 @ 4c1f9e2"),
        ("reserved", "cpu: 9 of 9, watermark 7200m, besides 1 for the system"),
        ("reserved by", "Pod/team/q: cpu 5; lacks cpu 500m; load unknown"),
        ("reserved by", "Pod/team/p: cpu 3; load 0.250; leaving"),
        ("reserved by", "Pod/team/r: cpu 1; not elastic"),
        ("pressure", f"{PRESSED}; pods that are leaving account for all of it"),
    ]


def test_what_would_relieve_a_node_is_told_where_nobody_leaves() -> None:
    rows = rows_of({"nodes": NODES, "policy": {"migration": "None"}})
    assert rows[-1] == ("relieved if", "Pod/team/p could leave")
    assert rows[-2][1].endswith("not accounted for: cpu 2300m")
    rows = rows_of({"nodes": {"a": {"pods": {"p": {"has": 1, "load": 1}, "r": {"has": 9, "plain": True}}}}})
    assert rows[-1] == ("relieved if", "Pod/team/p could leave, and that is not enough")
    rows = rows_of({"nodes": {"a": {"pods": {"r": {"has": 9, "plain": True}}}}})
    assert rows[-1] == ("relieved if", "no elastic pod would relieve the node")


def test_a_node_without_pressure_says_so() -> None:
    assert rows_of({"nodes": NODES}, "b")[-1] == ("pressure", "none")


def test_what_nobody_knows_is_no_zero() -> None:
    assert rows_of({"nodes": NODES, "state": "none"})[-1][1].startswith("unknown: only the controller")
    (row,) = rows_of({"nodes": NODES, "policy": {"suspend": True}})
    assert row[0] == "pressure"
    assert "is suspended" in row[1]
    assert rows_of({"nodes": NODES, "policy": "none"}) == []


def test_only_the_largest_pods_are_listed() -> None:
    pods = {f"p{number:02}": {"has": 0.1 * number, "load": 1} for number in range(1, 13)}
    rows = [text for label, text in rows_of({"nodes": {"a": {"pods": pods}}}) if label == "reserved by"]
    assert rows[0].startswith("Pod/team/p12:")
    assert rows[-1] == "and 2 more"
    assert len(rows) == 11


def test_the_overview_names_nodes_under_pressure() -> None:
    (node,) = pressed_of(scene_of({"nodes": NODES}))
    what = f"a of a100: {PRESSED}"
    assert pressed_node_words(node) == f"{what}; 1 pod leaving"
    assert json.loads(json.dumps(pressed_node_json(node)))["migrating"] == 1
    (node,) = pressed_of(scene_of({"nodes": NODES, "pool": {"mode": "Observe"}}))
    assert pressed_node_words(node) == f"{what}; no pod is leaving, cpu 2300m not accounted for"


def test_the_overview_has_a_section_for_them() -> None:
    document = overview_document(overview_of(ALONE, scene_of({"nodes": NODES})))
    assert f"a of a100: {PRESSED}; 1 pod leaving" in write(document, "text", color=False)


def test_a_pool_from_which_pods_are_moved_is_not_said_to_keep_them() -> None:
    for policy, words in (({}, "no DrainPolicy"), ("none", "no DrainPolicy: pods are not moved")):
        rows = dict(about_node(scene_of({"nodes": NODES, "policy": policy}), "a").rows)
        assert rows["policies"] == f"no NodeProvisioner; {words}"
