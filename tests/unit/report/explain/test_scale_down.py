"""Why a node is scaled down: as in the design; and what is said to keep it, done, keeps it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.fleet.fleet import Fleet
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.scaling.size import kept_if
from reconciler.report.explain.about import ExplainedObject, Explanation
from reconciler.report.explain.scale_down import ScaleDownForecast, forecast_scale_down
from reconciler.report.explain.subject import about
from reconciler.report.sentences import sentence
from tests.unit.plan.scaling.stage import World

CASE: dict[str, Any] = {
    "nodes": 120,
    "busy": "0-79",
    "marked": {"80-85": "soft 660"},
    "bought": {"0-59": "spot"},
    "pool": {
        "instanceTypes": [
            {
                "name": "p4d.24xlarge",
                "capacity": {"cpu": "96", "memory": "1100Gi"},
                "pricePerHour": {"on-demand": "21.96", "spot": "9.00"},
            }
        ]
    },
    "keep": {"minGPUUtilizationPercent": 70},
}


def scene(case: dict[str, Any]) -> PlanningResult:
    world = World(case)
    return PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())


def asked(case: dict[str, Any], subject: str) -> Explanation:
    kind, name = subject.split("/")
    return about(scene(case), ExplainedObject(kind, name))


def rows(answer: Explanation) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for label, text in answer.rows:
        found.setdefault(label, []).append(text)
    return found


def test_a_marked_node_is_told_as_in_the_design() -> None:
    answer = asked(CASE, "node/a100-082")
    told = rows(answer)
    assert answer.headline == "a100, p4d.24xlarge on-demand, 0 of 8 GPUs in use, empty"
    assert answer.outcome == "Will be deleted at 08:11Z (in 11 min) if still empty."
    assert told["why"] == [
        (
            "80 of 120 nodes busy: 66.7 % of the GPUs are in use; for the minimum of 70 %, the pool may have at most "
            "114 nodes, so 6 of the 40 empty are deleted"
        ),
        "minGPUUtilizationPercent, policies/a100.yaml:23 @ 4c1f9e2",
    ]
    assert told["why this one"] == ["3rd in order: by name"]
    assert told["kept if"] == [
        (
            "a pod is scheduled to the node (the taint is soft until 08:10:30Z), or 21 more GPUs are in use "
            "(661, now 640), or minGPUUtilizationPercent is 67 or less"
        )
    ]
    assert told["to stop it"] == ['reconciler freeze node/a100-082 --for 4h --reason "..."']


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (
            "a100-000",
            ("no: a pod runs on the node, and NodeProvisioner/a100 removes only empty nodes, policies/a100.yaml:23"),
        ),
        (
            "a100-090",
            (
                "6 of 40 empty nodes are to be deleted; this node is 11th in order; NodeProvisioner/a100 "
                "policies/a100.yaml:23"
            ),
        ),
    ],
)
def test_a_node_that_stays_says_why(node: str, told: str) -> None:
    assert rows(asked(CASE, f"node/{node}"))["scaled down"] == [f"{told} @ 4c1f9e2"]


ELSEWHERE: dict[str, Any] = {
    "pending": [{"gpus": 8, "selects": {"topology.kubernetes.io/zone": "zone-b"}}],
    "also": {"b100": {"nodes": 1, "busy": "0", "zone": {"0": "zone-b"}}},
}


@pytest.mark.parametrize(
    ("more", "kept", "told"),
    [
        (
            {"unready": "0-54"},
            "too many nodes of its pool are not ready",
            (
                "55 of 120 nodes of a100 are not ready, more than 3 and more than 45 %: no node of the pool is "
                "marked or deleted until more nodes are ready."
            ),
        ),
        (
            ELSEWHERE,
            "pods without a node need its pool",
            "a100 must serve 1 pod without a node: no node of the pool is marked or deleted meanwhile.",
        ),
        (
            {"unread": ["leases.coordination.k8s.io"]},
            "the lent GPUs of its pool are unknown",
            (
                "the lent GPUs of a100 are unknown (leases.coordination.k8s.io: timed out), so no node of the pool is "
                "marked or deleted."
            ),
        ),
        ({"frozen_pool": 900}, "a freeze is active", "pool a100 is frozen until 2026-11-02T08:15:00Z"),
        ({"frozen": {"82": 900}}, "a freeze is active", "Node/a100-082 is frozen until 2026-11-02T08:15:00Z"),
        (
            {"pool": {**CASE["pool"], "suspend": True}},
            "its pool is suspended",
            "GpuPool/a100 is suspended, policies/a100.yaml:23 @ 4c1f9e2",
        ),
    ],
    ids=["braked", "wanted", "unread", "frozen pool", "frozen node", "suspended"],
)
@pytest.mark.parametrize("mark", ["hard -60", "soft 660"])
def test_a_marked_node_says_what_holds_it(mark: str, more: dict[str, Any], kept: str, told: str) -> None:
    answer = asked({**CASE, "marked": {"80-85": mark}, **more}, "node/a100-082")
    assert answer.outcome == f"Marked; not deleted while {kept}."
    found = rows(answer)
    assert found["prevented by"] == [told]
    assert found["why"][0].endswith(
        "so 6 of the 39 empty are deleted" if "frozen" in more else "so 6 of the 40 empty are deleted"
    )
    assert all(found.get("kept if", ["something"]))


def test_a_node_that_is_held_past_its_time_says_nothing_of_a_deletion_then() -> None:
    answer = asked({**CASE, "marked": {"80-85": "hard -60"}, "frozen_pool": 900}, "node/a100-082")
    assert [sentence(each.reason) for each in answer.decisions] == [
        (
            "a100-082 is empty, and marked for deletion at 2026-11-02T07:59:00Z: the node is not deleted while a "
            "freeze is active."
        )
    ]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"lent": {"90": 4}}, "no: a GPU of the node is lent, and NodeProvisioner/a100 removes only empty nodes"),
        ({"came": {"90": 20}}, "no: the node is new, so NodeProvisioner/a100 does not remove it before 08:00:40Z"),
        ({"draining": "90"}, "no: the drain of the node deletes the node, and NodeProvisioner/a100 does not"),
    ],
)
def test_an_empty_node_that_is_not_ours_to_take_says_why(more: dict[str, Any], told: str) -> None:
    (row,) = rows(asked({**CASE, **more}, "node/a100-090"))["scaled down"]
    assert row.startswith(f"{told}, policies/a100.yaml:")


def test_a_node_of_which_gpus_are_lent_is_none_of_the_empty() -> None:
    told = rows(asked({**CASE, "lent": {"86-89": 1}}, "node/a100-082"))
    assert told["why"][0].endswith("so 5 of the 36 empty are deleted")


def test_where_the_largest_size_decides_that_is_named() -> None:
    told = rows(asked({**CASE, "keep": {"minGPUUtilizationPercent": 0, "maxSize": 114}}, "node/a100-082"))
    assert told["why"] == [
        (
            "80 of 120 nodes busy: 66.7 % of the GPUs are in use, and the minimum is 0 %; maxSize allows 114 nodes, so "
            "6 of the 40 empty are deleted"
        ),
        "maxSize, policies/a100.yaml:23 @ 4c1f9e2",
    ]


def test_dearer_nodes_go_first_and_that_is_said() -> None:
    case = {**CASE, "bought": {"0-99": "spot"}, "marked": {}}
    told = rows(asked(case, "node/a100-102"))
    assert told["why this one"] == ["3rd in order: more expensive first (on-demand), then by name"]


def test_a_pool_that_only_observes_says_what_would_be() -> None:
    case = {**CASE, "pool": {**CASE["pool"], "mode": "Observe"}, "marked": {}}
    assert asked(case, "node/a100-082").outcome == (
        "Would apply if GpuPool/a100 were in mode Enforce: will be deleted at 08:10Z (in 10 min) if still empty."
    )


def test_a_provisioner_says_its_target_and_what_is_marked() -> None:
    answer = asked(CASE, "provisioner/a100")
    told = rows(answer)
    assert answer.headline == "120 nodes, 80 busy, 640 of 960 GPUs in use"
    assert answer.outcome == "The pool has 6 nodes more than its target; 6 are marked."
    assert told["target"] == [
        (
            "114 nodes: 66.7 % of the GPUs are in use; for the minimum of 70 %, the pool may have at most 114 nodes. "
            "policies/a100.yaml:23 @ 4c1f9e2"
        )
    ]
    assert told["marked"] == ["6 nodes, deleted at 08:11Z if still empty"]


def test_a_provisioner_says_which_schedules_hold_and_when_its_windows_open() -> None:
    keep = {
        "minSize": 2,
        "warmNodes": 1,
        "schedules": [
            {"schedule": "0 8 * * *", "duration": "10h", "minSize": 30},
            {"schedule": "0 18 * * *", "timeZone": "Europe/Berlin", "duration": "1h", "warmNodes": 4},
        ],
        "windows": [{"schedule": "0 20 * * *", "duration": "10h"}],
    }
    told = rows(asked({"nodes": 40, "busy": "0-3", "keep": keep}, "provisioner/a100"))
    assert told["policy"] == ["30 to 200 nodes of a100, 1 of them warm, policies/a100.yaml:23 @ 4c1f9e2"]
    assert told["schedule"] == [
        "minSize 30 until 2026-11-02T18:00:00Z, policies/a100.yaml:23 @ 4c1f9e2",
        "warmNodes 4 from 2026-11-02T17:00:00Z, policies/a100.yaml:23 @ 4c1f9e2",
    ]
    assert told["windows"] == ["closed until 2026-11-02T20:00:00Z: no more nodes are marked"]


def test_an_empty_node_that_is_too_many_says_when_the_next_window_opens() -> None:
    keep = {"windows": [{"schedule": "0 20 * * *", "duration": "10h"}]}
    told = rows(asked({"nodes": 10, "busy": "0-3", "keep": keep}, "node/a100-004"))
    assert told["scaled down"][0].startswith("no: no window of NodeProvisioner/a100 is open before 20:00:00Z, ")


def test_a_provisioner_says_what_keeps_it_from_its_target() -> None:
    told = rows(asked({**CASE, "unread": ["pods"]}, "provisioner/a100"))
    assert told["target"] == ["pods are unknown: timed out"]


def of(case: dict[str, Any], node: str) -> ScaleDownForecast:
    found = scene(case)
    seen = found.fleet.node(node)
    assert seen is not None
    told = forecast_scale_down(found, seen)
    assert told is not None
    return told


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A pool of which some nodes go, and one of them."""
    nodes = draw(st.integers(2, 24))
    busy = draw(st.integers(0, nodes - 1))
    marked = draw(st.integers(0, nodes - busy))
    case: dict[str, Any] = {
        "nodes": nodes,
        "keep": {
            "minGPUUtilizationPercent": draw(st.integers(1, 100)),
            "minUnutilizedGPUNodes": draw(st.integers(0, 3)),
            "minSize": draw(st.integers(0, 4)),
        },
    }
    if busy:
        case["busy"] = f"0-{busy - 1}"
    if marked:
        case["marked"] = {f"{busy}-{busy + marked - 1}": "soft 300"}
    if draw(st.booleans()):
        case["lent"] = {str(draw(st.integers(busy, nodes - 1))): draw(st.integers(1, 8))}
    return case, f"a100-{draw(st.integers(busy, nodes - 1)):03}"


@given(cases())
@settings(max_examples=60)
def test_what_is_said_to_keep_a_node_keeps_it(drawn: tuple[dict[str, Any], str]) -> None:
    case, node = drawn
    told = of(case, node)
    if told.own is None:
        return
    found = kept_if(told.evaluated, told.wish.spec, told.rank)
    least = 0 if found.percent is None else found.percent + 1
    assert of(kept(case, minGPUUtilizationPercent=least), node).own is not None
    if found.percent is not None:
        assert of(kept(case, minGPUUtilizationPercent=found.percent), node).own is None
    if found.unutilized is not None:
        assert of(kept(case, minUnutilizedGPUNodes=found.unutilized), node).own is None
    more = 0 if found.gpus_used is None else found.gpus_used - told.evaluated.use.gpus_used
    spare = [each.name for each in reversed(told.empty) if told.departing.get(each.name) is None]
    if more and more <= 8 * len(spare):
        uses = {int(name[-3:]): min(8, more - 8 * at) for at, name in enumerate(spare) if more > 8 * at}
        assert of({**case, "uses": uses}, node).own is None


def kept(case: dict[str, Any], **keep: int) -> dict[str, Any]:
    return {**case, "keep": case["keep"] | keep}


def test_a_figure_that_is_not_there_is_not_told() -> None:
    case = {**CASE, "keep": {"minGPUUtilizationPercent": 70, "maxSize": 100}}
    (told,) = rows(asked(case, "node/a100-082"))["kept if"]
    assert told == "a pod is scheduled to the node (the taint is soft until 08:10:30Z)"
    assert msgspec.structs.asdict(kept_if(of(case, "a100-082").evaluated, of(case, "a100-082").wish.spec, 3)) == {
        "gpus_used": None,
        "percent": None,
        "unutilized": None,
    }
