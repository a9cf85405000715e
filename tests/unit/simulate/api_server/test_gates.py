"""Pods behind gates, their priorities and their deadlines, on an imagined cluster as on a real one."""

from typing import Any

import msgspec
import pytest

from reconciler.model import names
from reconciler.model.instant import timestamp
from reconciler.model.plan.decision import Apply, Decision, Outcome, Ref, Ungate
from reconciler.protocol.preconditions import Object
from reconciler.simulate.api_server import refusal
from reconciler.simulate.scenario.cluster import Constant, ScenarioWorkload
from reconciler.simulate.workloads import Job, job_of, replicas_of
from reconciler.simulate.world import World
from tests.unit.plan.smart_pods import restricted
from tests.unit.plan.some_reasons import some_reason
from tests.unit.simulate.stage import START, Small, node, pod, workload

FOREIGN = "other.example.com/gate"
WAITING = ScenarioWorkload(
    name="train", gpus=8, waits_for_capacity=True, gates=[FOREIGN, names.CAPACITY_GATE], constant=Constant(pods=1)
)
LOWEST = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "smart"},
    "value": -1_000_000_000,
    "preemptionPolicy": "Never",
}


class Ours:
    """Whoever leads, always."""

    def holds(self) -> bool:
        return True


def applied(there: Small, ref: Ref, act: Apply | Ungate) -> Outcome:
    (outcome,) = there.world.apply([Decision("test", ref, act, some_reason("Test"), "")], Ours())
    return outcome


def made(there: Small, name: str, **spec: Any) -> Outcome:
    """As we make a smart pod."""
    body = pod(name, gpus=8, **spec, **restricted.POD)
    body.pop("status")
    labels = {names.COMPONENT: names.SMART_SCHEDULER, names.MANAGED: "true"}
    body["metadata"] = {"name": name, "namespace": names.SMART_PODS_NAMESPACE, "labels": labels}
    (container,) = body["spec"]["containers"]
    body["spec"]["containers"] = [{**restricted.CONTAINER, "resources": container["resources"]}]
    ref = Ref("Pod", names.SMART_PODS_NAMESPACE, name)
    return applied(there, ref, Apply(manifest=msgspec.json.encode(body).decode()))


def spec_of(there: Small, name: str) -> Object:
    (found,) = [each for each in there.world.of("Pod") if each["metadata"]["name"] == name]
    return dict(found["spec"])


def scheduled(there: Small, name: str) -> Object:
    conditions = there.get("Pod", name)["status"].get("conditions", ())
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def ungate(there: Small, name: str, gate: str) -> None:
    assert applied(there, Ref("Pod", "default", name), Ungate(gate=gate)).result == "done"


def test_a_pod_says_that_it_is_gated_until_its_last_gate_is_lifted_and_then_that_it_fits_nowhere() -> None:
    there = Small(node("n1", gpus=4)).start()
    there.world.put(pod("gated", gpus=8, schedulingGates=[{"name": names.CAPACITY_GATE}, {"name": FOREIGN}]))
    assert scheduled(there.until(30), "gated")["reason"] == "SchedulingGated"
    ungate(there, "gated", FOREIGN)
    assert scheduled(there.until(60), "gated")["reason"] == "SchedulingGated"
    ungate(there, "gated", names.CAPACITY_GATE)
    assert scheduled(there.until(90), "gated")["reason"] == "Unschedulable"
    there.world.put(node("n2"))
    assert there.until(120).pods()["gated"] == ("n2", "Running")


def test_pods_of_workloads_that_wait_for_capacity_are_made_with_its_gate_and_so_are_those_that_follow_them() -> None:
    for body, way in ((replicas_of(WAITING, 1), "replicas"), (job_of(WAITING, Job("train", 60)), "a job")):
        there = Small(node("n1")).start()
        there.world.put(body)
        for _ in range(2):
            (name,) = there.until((there.stage.now - START) // 1_000 + 20).pods()
            found = there.get("Pod", name)
            assert [each["name"] for each in found["spec"]["schedulingGates"]] == [names.CAPACITY_GATE, FOREIGN], way
            assert found["metadata"]["annotations"][names.WAIT_FOR_CAPACITY] == "true"
            assert scheduled(there, name)["reason"] == "SchedulingGated"
            there.world.delete(Ref("Pod", "default", name))
            there.until((there.stage.now - START) // 1_000 + 5)


def test_other_workloads_have_no_gates() -> None:
    plain = msgspec.structs.replace(WAITING, waits_for_capacity=False, gates=[])
    template = replicas_of(plain, 1)["spec"]["template"]
    assert "schedulingGates" not in template["spec"]
    assert names.WAIT_FOR_CAPACITY not in template["metadata"]["annotations"]


def test_the_class_of_a_pod_becomes_its_priority() -> None:
    there = Small(node("n1")).start()
    there.world.put(LOWEST)
    assert made(there, "smart", priorityClassName="smart").result == "done"
    there.world.put(pod("system", priorityClassName="system-node-critical"))
    there.world.put(pod("theirs", priorityClassName="smart"))
    for name, priority, policy in (
        ("smart", -1_000_000_000, "Never"),
        ("system", 2_000_001_000, "PreemptLowerPriority"),
        ("theirs", -1_000_000_000, "Never"),
    ):
        spec = spec_of(there, name)
        assert (spec["priority"], spec["preemptionPolicy"]) == (priority, policy)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        ({"priorityClassName": "smart", "priority": 5}, "priority 5 must not be provided"),
        ({"priorityClassName": "smart", "preemptionPolicy": "PreemptLowerPriority"}, "preemptionPolicy Preempt"),
        ({"priority": -5}, "priority -5 must not be provided"),
    ],
)
def test_a_pod_whose_priority_can_not_be_so_is_refused(spec: Object, why: str) -> None:
    there = World(START)
    there.put(LOWEST)
    assert why in refusal(pod("p", **spec), there)


def test_we_are_refused_a_class_that_is_not_there() -> None:
    there = Small(node("n1")).start()
    outcome = made(there, "p", priorityClassName="none")
    assert (outcome.result, "no PriorityClass with name none" in outcome.detail) == ("refused", True)
    assert there.pods() == {}


def test_a_pod_that_names_no_class_is_of_the_one_by_default() -> None:
    there = Small(node("n1")).start()
    there.world.put({**LOWEST, "metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    assert made(there, "ours").result == "done"
    there.world.put(pod("theirs"))
    assert [spec_of(there, name)["priority"] for name in ("ours", "theirs")] == [7, 7]


def test_a_smart_pod_leaves_for_any_other_and_nobody_leaves_for_it() -> None:
    there = Small(node("n1"), node("n2")).start()
    there.world.put(LOWEST)
    made(there, "smart", priorityClassName="smart", terminationGracePeriodSeconds=0)
    there.world.put(pod("kept", gpus=8, priority=-2_000_000_000))
    there.until(20)
    made(there, "late", priorityClassName="smart")
    assert {name for name, (on, _) in there.until(60).pods().items() if on} == {"smart", "kept"}, "it never preempts"
    there.world.delete(Ref("Pod", "default", "kept"))
    there.world.put(workload("Job", "real", {"spec": pod("real", gpus=8)["spec"]}, parallelism=2))
    running = {name.rpartition("-")[0] for name, (on, _) in there.until(200).pods().items() if on}
    assert running == {"real"}, "both of them, on the nodes of the two"


def test_a_pod_that_has_run_for_as_long_as_it_may_has_failed() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("short", gpus=8, activeDeadlineSeconds=100))
    assert there.until(99).pods()["short"] == ("n1", "Running")
    status = there.until(112).get("Pod", "short")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_pod_that_never_ran_is_not_ended_by_its_deadline() -> None:
    there = Small(node("n1", gpus=4)).start()
    there.world.put(pod("never", gpus=8, activeDeadlineSeconds=10))
    assert there.until(600).pods()["never"] == ("", "Pending")


def test_a_pod_that_was_running_before_ends_by_when_it_began() -> None:
    there = Small(node("n1"))
    running = pod("old", gpus=8, activeDeadlineSeconds=100, nodeName="n1")
    there.world.put({**running, "status": {"phase": "Running", "startTime": timestamp(START)}})
    there.start()
    assert there.until(99).pods()["old"] == ("n1", "Running")
    assert there.until(101).pods()["old"] == ("n1", "Failed")


def test_a_job_whose_pod_had_its_time_makes_another() -> None:
    there = Small(node("n1")).start()
    template = {"spec": pod("p", gpus=8, activeDeadlineSeconds=60)["spec"]}
    there.world.put(workload("Job", "j", template, parallelism=1, completions=1))
    assert sorted(phase for _, phase in there.until(80).pods().values()) == ["Failed", "Running"]
