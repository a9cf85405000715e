"""`status` shows what is on its way, what is held, and whether a controller runs and who leads."""

from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Lease, LeaseSpec, Metadata
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.instant import timestamp
from reconciler.plan.files.dump import PlanningResult
from reconciler.report import write
from reconciler.report.status.overview import controller_of, controller_words, overview_document, overview_of
from tests.unit.plan.drain import stage as drain_stage
from tests.unit.plan.scaling import stage as scaling_stage
from tests.unit.plan.scaling.stage import NOW, after
from tests.unit.report.plans.samples import ALONE

Json = dict[str, Any]

SETTING = msgspec.structs.replace(ALONE, now=NOW, seen_at=NOW)


def scene_of(world: Any) -> PlanningResult:
    return PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())


def text(world: Any) -> str:
    return write(overview_document(overview_of(SETTING, scene_of(world))), "text", color=False)


def payload(world: Any) -> Json:
    return overview_document(overview_of(SETTING, scene_of(world))).payload


def marked(seconds: int, count: int = 3) -> Any:
    """A pool of five nodes, of which so many are deleted in so many seconds."""
    nodes = dict.fromkeys(range(count), f"soft {seconds}")
    return scaling_stage.World({"nodes": 5, "busy": "3-4", "marked": nodes})


def test_three_nodes_that_are_deleted_in_half_a_minute_are_shown_with_their_time() -> None:
    told = text(marked(40))
    assert "Nodes leaving and arriving" in told
    assert "a100: 3 nodes to be scaled down, at 08:00Z (in 40 s): a100-000, a100-001, a100-002" in told
    assert "There is nothing to do" not in told
    (leaving,) = payload(marked(40))["leaving"]
    assert (leaving["nodes"], leaving["first_at"]) == (["a100-000", "a100-001", "a100-002"], timestamp(after(40)))


def test_what_waits_for_its_time_alone_is_on_its_way_and_nothing_more_is_to_be_done() -> None:
    told = text(marked(300))
    assert "(in 5 min)" in told
    assert told.rstrip().endswith("There is nothing more to do now.")


def test_drains_are_shown_before_they_begin_and_while_they_last() -> None:
    nodes: Json = {"a": {"pods": ["web 1"], "candidate": 540}, "c": {"pods": ["big 5"]}}
    assert "a100: 1 node to be drained, at 08:01Z (in 60 s), 1 pod to move: a" in text(
        drain_stage.World({"nodes": nodes})
    )
    nodes["a"] = {"pods": ["web 1 leaving"], "draining": 60}
    assert "a100: 1 node being drained, since 07:59Z: a" in text(drain_stage.World({"nodes": nodes}))


def test_what_waits_is_shown_with_its_reason_once_for_all_that_share_it() -> None:
    world = drain_stage.World(
        {
            "nodes": {"a": {"pods": ["web 1"], "candidate": 900}, "b": {"pods": ["web 1"], "candidate": 900}}
            | {"c": {"pods": ["big 5"]}},
            "policy": {"windows": [{"schedule": "0 20 * * *", "duration": "2h"}]},
        }
    )
    told = text(world)
    assert "Waiting\n  . Node/a and 1 more" in told
    assert "Held" not in told
    assert "the windows of DrainPolicy/drains are closed until 2026-11-02T20:00:00Z" in told
    assert [(each["reason"], each["held"]) for each in payload(world)["holds"]] == [("WindowClosed", False)] * 2
    assert (payload(world)["held"], payload(world)["waiting"]) == (0, 2)


def test_all_candidates_are_counted_though_one_plan_taints_200() -> None:
    nodes: Json = {"n": {"pods": ["web 1"], "copies": 204}, "z": {"pods": ["web 1", "big 4"], "copies": 80}}
    assert "204 actions to carry out. For details, run `reconciler plan`." in text(drain_stage.World({"nodes": nodes}))


LEASE = LeaseSpec("pod-7f", 15, "2026-11-02T05:00:00.000000Z", "2026-11-02T07:59:58.000000Z", 3)
GHOST = msgspec.structs.replace(LEASE, lease_duration_seconds=2**31 - 1)


def observed(spec: LeaseSpec | None, seen: str = "", **fields: Any) -> Observed:
    metadata = Metadata(names.LEADER_LEASE, names.OWN_NAMESPACE, annotations=Annotations(seen_at=seen))
    leases = (Lease(metadata, spec),) if spec is not None else ()
    return Observed(**{"seen_at": NOW, "leases": leases, **fields})


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (
            observed(LEASE, "2026-11-02T07:59:57Z"),
            "Controller: pod-7f leads for 3 h; it renewed its Lease 2 s ago, and took a snapshot 3 s ago.",
        ),
        (observed(LEASE), "Controller: pod-7f leads for 3 h; it renewed its Lease 2 s ago."),
        (
            observed(msgspec.structs.replace(LEASE, renew_time="2026-11-02T07:50:00Z")),
            "Controller: not running: the last leader was pod-7f; it renewed its Lease 10 min ago.",
        ),
        (
            observed(
                msgspec.structs.replace(LEASE, renew_time="2026-11-02T07:50:00Z", lease_duration_seconds=2**31 - 1)
            ),
            "Controller: not running: the last leader was pod-7f; it renewed its Lease 10 min ago.",
        ),
        (
            observed(msgspec.structs.replace(LEASE, renew_time="9999-12-31T23:59:59Z")),
            "Controller: not running: the last leader was pod-7f; it renewed its Lease now.",
        ),
        (
            observed(LEASE, seen_at=0),
            "Controller: pod-7f held the Lease at the time of the snapshot; it renewed its Lease 2 s ago.",
        ),
        (
            observed(msgspec.structs.replace(LEASE, holder_identity="")),
            "Controller: not running: nobody holds Lease/gpu-system/reconciler.",
        ),
        (observed(None), "Controller: not running: nobody holds Lease/gpu-system/reconciler."),
        (
            observed(None, unread=(Unread("leases.coordination.k8s.io of the controller", "403 Forbidden"),)),
            "Controller: unknown (leases.coordination.k8s.io of the controller: 403 Forbidden).",
        ),
        (
            observed(None, unread=(Unread("leases.coordination.k8s.io", "403 Forbidden"),)),
            "Controller: unknown (leases.coordination.k8s.io: 403 Forbidden).",
        ),
        (
            observed(msgspec.structs.replace(LEASE, renew_time="soon", acquire_time="")),
            "Controller: pod-7f held the Lease at the time of the snapshot.",
        ),
    ],
)
def test_a_lease_tells_whether_a_controller_runs_and_when_it_saw_the_cluster(seen: Observed, told: str) -> None:
    assert controller_words(controller_of(seen), NOW) == told
