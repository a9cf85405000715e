"""What could not be bought is told: as a condition of the pool, by status and explain, and by the pods that wait."""

from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import Shortage
from reconciler.model.plan.memory import Memory
from reconciler.plan.files.dump import PlanningResult
from reconciler.report import write
from reconciler.report.conditions import statuses
from reconciler.report.explain.about import ExplainedObject
from reconciler.report.explain.subject import about
from reconciler.report.header import ReportHeader
from reconciler.report.status.overview import overview_document, overview_of
from tests.unit.plan.smart_pods.stage import SmartWorld
from tests.unit.plan.status.stage import LATER, NOW, READY, RESOURCES, after, conditions, inputs, plan, told, wish
from tests.unit.policy.custom_resources.stage import rendered

WHY = "SmartPodWithoutMachine"
SPOT = "p4d.24xlarge (spot)"


def short(pool: str = "a100", since: int = 0, kind: str = "spot") -> Shortage:
    at = Instant(NOW + 1_000 * since)
    return Shortage(pool, "p4d.24xlarge", kind, "", at, Instant(at + 600_000), "asked", WHY)


def status_of(*shortages: Shortage, now: Instant = NOW) -> Any:
    made = msgspec.structs.replace(plan(), memory=Memory(shortages=tuple(sorted(shortages))))
    status = told(statuses(inputs(wish(), now), made, RESOURCES))["GpuPool/a100"]
    assert conditions(status) == READY, "it is no less followed for that"
    (found,) = [each for each in status["conditions"] if each["type"] == "CapacityShort"]
    return found


def test_a_pool_of_which_nothing_was_refused_says_so() -> None:
    found = status_of()
    assert (found["status"], found["reason"]) == ("False", "NothingRefused")


def test_what_could_not_be_bought_is_named_with_until_when_it_is_left_out() -> None:
    found = status_of(short(), short(since=35, kind="on-demand"))
    assert (found["status"], found["reason"]) == ("True", WHY)
    assert found["message"] == (
        "these launch options failed: p4d.24xlarge (spot) until 2026-11-02T08:10:00Z; "
        "p4d.24xlarge (on-demand) until 2026-11-02T08:10:35Z; waiting pods use other options"
    )


@pytest.mark.parametrize(("shortage", "now"), [(short("l4"), NOW), (short(), LATER)], ids=["of another", "forgotten"])
def test_what_is_over_or_of_another_pool_is_not_told(shortage: Shortage, now: Instant) -> None:
    assert status_of(shortage, now=now)["status"] == "False"


def test_it_is_told_once() -> None:
    desired, made = wish(), msgspec.structs.replace(plan(), memory=Memory(shortages=(short(),)))
    objects = after(rendered(desired), statuses(inputs(desired), made, RESOURCES))
    assert statuses(inputs(desired, Instant(NOW + 60_000), objects), made, RESOURCES) == ()


# By status and explain


def scene(**case: Any) -> PlanningResult:
    world = SmartWorld({"nodes": 1, "busy": "0", "pending": [{"gpus": 8}], **case})
    return PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())


def rows(there: PlanningResult, kind: str, name: str, namespace: str = "") -> dict[str, str]:
    return dict(about(there, ExplainedObject(kind, name, namespace)).rows)


def test_explain_and_status_tell_of_a_pool_what_it_can_not_have() -> None:
    there = scene(short=[{"kind": "spot", "since": 3}])
    assert rows(there, "pool", "a100")["unavailable"].startswith(f"{SPOT} until ")
    assert "unavailable" not in rows(scene(), "pool", "a100")
    setting = ReportHeader("prod", "r", "c", "", there.inputs.now, there.inputs.now, "0")
    page = write(overview_document(overview_of(setting, there)), "text", False)
    assert f"Pool a100 lacks capacity: {SPOT} until " in page
    assert "is short" not in write(overview_document(overview_of(setting, scene())), "text", False)


# Of the pods


def waiting(there: PlanningResult) -> tuple[str, dict[str, str]]:
    (pod,) = (each for each in there.inputs.observed.pods if each.name == "wait-0-0")
    found = about(there, ExplainedObject("pod", pod.name, pod.metadata.namespace))
    return found.outcome, dict(found.rows)


def smart(there: PlanningResult) -> tuple[str, dict[str, str]]:
    (pod,) = (each for each in there.inputs.observed.pods if each.name.startswith("smart-"))
    found = about(there, ExplainedObject("pod", pod.name, pod.metadata.namespace))
    return found.outcome, dict(found.rows)


def test_a_pod_behind_our_gate_says_what_it_waits_for_and_what_is_planned() -> None:
    outcome, told_of_it = waiting(scene())
    assert outcome.startswith("insufficient GPUs in pool a100, scaling triggered.")
    assert told_of_it["waits for"] == "a usable node with free capacity; then its gate is removed"
    assert "requested" not in told_of_it
    assert waiting(scene(nodes=2))[0].startswith("Node/a100-001 has room for Pod/")


def test_and_what_was_asked_for_it() -> None:
    told_of_it = waiting(scene(smart=[{"age": 40, "kind": "on-demand", "bought": "a100-x1", "had": "a100-x1"}]))[1]
    assert told_of_it["requested"].endswith(
        ": p4d.24xlarge (on-demand), Pending, NodeClaim/a100-x1 is Created, for 40 s"
    )


def test_one_behind_the_gate_of_another_too_says_whose_turn_it_is() -> None:
    there = scene(pending=[{"gpus": 8, "gates": ["gpu.scheduling/capacity", "queue.example.com/turn"]}])
    assert waiting(there)[1]["waits for"].startswith("removal of queue.example.com/turn by other controllers")


def test_a_smart_pod_says_whom_it_is_for_what_it_asks_for_and_how_far_it_is() -> None:
    outcome, found = smart(scene(smart=[{"age": 10, "kind": "on-demand"}]))
    assert outcome.startswith("Waiting: Pod/gpu-smart-pods/smart-gpu-scheduler-a100-")
    assert found["serves"] == "Pod/research/wait-0-0"
    assert found["requests"] == "p4d.24xlarge (on-demand) with 8 GPUs, in pool a100"
    assert found["phase"] == "Pending, no NodeClaim yet, for 10 s"
    assert found["deadline"] == "10 min, unless a NodeClaim exists for the pod"


def test_one_for_the_least_size_says_so_and_one_for_pods_that_are_gone_how_many() -> None:
    assert smart(scene(pending=[], keep={"minSize": 2}, smart=[{"for": []}]))[1]["serves"] == "minSize of pool a100"
    assert smart(scene(pending=[], smart=[{"for": ["gone", "went"]}]))[1]["serves"] == "2 pods deleted since"
