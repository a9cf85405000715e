"""Pods and nodes with a PressurePolicy: who is excluded, which nodes come first, and what a Binding books."""

import asyncio
from typing import Any

import msgspec
import pytest

from reconciler.controller import extender
from reconciler.controller.extender import SchedulerExtender
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.protocol.desk import Desk
from reconciler.protocol.extender import BindRequest, FilterRequest
from reconciler.protocol.pressure_desk import PressureDesk
from tests import builders
from tests.unit.controller.test_extender import Binder
from tests.unit.protocol.pressure_stage import TEAM, elastic, leading, node

OURS: dict[str, Any] = {"scheduler_name": names.GPU_SCHEDULER, "namespace": TEAM}


def asking(cpu: str = "2", bounds: str = "", **container: Any) -> Any:
    resources = container or {"requests": {"cpu": cpu, "memory": "1Gi"}}
    metadata = {
        "name": "p",
        "namespace": TEAM,
        "uid": "uid-p",
        "annotations": {names.ELASTIC: bounds} if bounds else {},
    }
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "resources": resources}]}}


def filtered(desk: PressureDesk, pod: Any, *node_names: str) -> Any:
    request = msgspec.convert({"Pod": pod, "NodeNames": list(node_names)}, FilterRequest)
    return SchedulerExtender(Desk(), Binder(None), pressure=desk).filter(request)


def full(cpu: str = "15") -> PressureDesk:
    """15 cpus of each node are reservable, and the watermark is 12. On n0, some are reserved."""
    return leading(node("n0"), node("n1"), builders.pod("x", asks={"cpu": cpu}, node_name="n0", **OURS))


def test_a_node_without_room_is_excluded_with_the_resource() -> None:
    answer = filtered(full("14"), asking("2"), "n0", "n1")
    assert answer.node_names == ["n1"]
    refused = filtered(full("14"), asking("2"), "n0")
    assert refused.node_names == []
    assert "cpu: what pods and the system have reserved" in refused.failed_nodes["n0"]


def test_nodes_that_stay_below_their_watermark_come_first() -> None:
    assert filtered(full("11"), asking("2"), "n0", "n1").node_names == ["n1"]
    assert filtered(full("11"), asking("1"), "n0", "n1").node_names == ["n0", "n1"]
    assert filtered(full("11"), asking("2"), "n0").node_names == ["n0"]


def test_nodes_without_a_policy_are_as_before() -> None:
    desk = full("14")
    desk.put_node(node("other", pool="other"))
    assert filtered(desk, asking("20"), "n0", "other").node_names == ["other"]


UNPLACEABLE = {
    "no request of memory": (asking(requests={"cpu": "1"}), "no request and no limit of memory"),
    "no request at all": (asking(requests={}), "no request and no limit of cpu"),
    "bounds that cannot be read": (asking(bounds="cpu=many"), "can't be read"),
}


@pytest.mark.parametrize("name", UNPLACEABLE)
def test_a_pod_that_cannot_be_counted_is_placed_nowhere_with_a_policy(name: str) -> None:
    pod, words = UNPLACEABLE[name]
    answer = filtered(full(), pod, "n1")
    assert words in answer.failed_and_unresolvable_nodes["n1"]


def test_a_limit_is_enough() -> None:
    assert filtered(full(), asking(limits={"cpu": "1", "memory": "1Gi"}), "n1").node_names == ["n1"]


# --- Bindings.


def bound(desk: PressureDesk, pod: Pod, result: str = "done", wait_seconds: float = 0.0) -> str:
    async def story() -> str:
        served = SchedulerExtender(Desk(), Binder(pod, result), pressure=desk)
        answer = await served.bind(BindRequest(pod.name, TEAM, pod.metadata.uid, "n0"))
        await asyncio.sleep(wait_seconds)
        served.close()
        return answer.error

    return asyncio.run(story())


def reserved(desk: PressureDesk) -> int:
    ledger = desk.ledger("n0")
    assert ledger is not None
    return ledger.reserved("cpu")


@pytest.mark.parametrize(("result", "after"), [("done", 2_000), ("unknown", 2_000), ("refused", 0), ("conflict", 0)])
def test_a_binding_books_the_pod_until_it_definitely_failed(result: str, after: int) -> None:
    desk = leading(node("n0"))
    bound(desk, elastic("p", ""), result)
    assert reserved(desk) == after


def test_a_binding_of_unknown_effect_is_given_up_unless_the_pod_is_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender, "UNKNOWN_SECONDS", 0.01)
    desk = leading(node("n0"))
    bound(desk, elastic("p", ""), "unknown", wait_seconds=0.05)
    assert reserved(desk) == 0
    desk.put_pod(elastic("p", "n0"))
    bound(desk, elastic("p", ""), "unknown", wait_seconds=0.05)
    assert reserved(desk) == 2_000


def test_what_is_booked_does_not_count_twice_once_the_pod_is_observed() -> None:
    desk = leading(node("n0"))
    bound(desk, elastic("p", ""))
    desk.put_pod(elastic("p", "n0"))
    assert reserved(desk) == 2_000
    desk.drop_pod(elastic("p", "n0"))
    assert reserved(desk) == 0


def test_two_bindings_at_once_take_no_more_than_there_is() -> None:
    desk = full("13")
    assert bound(desk, elastic("p", "", cpu="2")) == ""
    assert "leaves too little" in bound(desk, elastic("q", "", cpu="1"))
    assert reserved(desk) == 15_000


def test_a_replica_that_does_not_lead_binds_nobody_to_such_a_node() -> None:
    desk = leading(node("n0"))
    desk.end_term()
    assert "only the leader binds" in bound(desk, elastic("p", ""))
