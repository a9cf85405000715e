"""Who acts on an imagined cluster: pods are made, scheduled, started, ended and given up as on a real one."""

from typing import Any

import pytest

from reconciler.fleet.snapshot import journal
from reconciler.model import names
from reconciler.model.plan.decision import Ref
from reconciler.simulate.actors.workloads import pod_of
from reconciler.simulate.objects import ObjectWrite
from tests.unit.simulate.stage import Small, node, pod, template, workload

SOFT = {"key": "gpu.scheduling/deletion-time", "value": "1", "effect": "PreferNoSchedule"}
HARD = {"key": "gpu.scheduling/draining", "value": "1", "effect": "NoSchedule"}


def scheduled(there: Small, name: str) -> dict[str, Any]:
    conditions = there.get("Pod", name)["status"].get("conditions", ())
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def test_a_job_runs_as_many_pods_at_once_as_it_says_and_is_cleared_away_when_it_is_done() -> None:
    there = Small(node("n1")).start()
    job = workload("Job", "j", template(2, seconds=100), parallelism=2, completions=3, ttlSecondsAfterFinished=60)
    there.world.put(job)
    assert sorted(there.until(15).pods().values()) == [("n1", "Running"), ("n1", "Running")]
    assert sorted(there.until(125).pods().values()) == [("n1", "Running"), ("n1", "Succeeded"), ("n1", "Succeeded")]
    there.until(230)
    assert there.get("Job", "j")["status"]["succeeded"] == 3
    there.until(300)
    assert there.pods() == {}
    assert there.world.get(Ref("Job", "default", "j")) is None


def test_fewer_replicas_take_down_first_what_does_least() -> None:
    there = Small(node("n1", gpus=2)).start()
    there.world.put(workload("ReplicaSet", "r", template(1), replicas=3))
    before = there.until(20).pods()
    (waiting,) = (name for name, (on, _) in before.items() if not on)
    there.world.edit(Ref("ReplicaSet", "default", "r"), {"spec": {"replicas": 2}})
    assert there.until(60).pods().keys() == before.keys() - {waiting}
    assert there.get("ReplicaSet", "r")["status"] == {"replicas": 2, "readyReplicas": 2}


def test_a_pod_of_a_stateful_set_comes_back_under_its_name_once_it_is_gone() -> None:
    there = Small(node("n1")).start()
    there.world.put(workload("StatefulSet", "s", template(), replicas=2))
    assert list(there.until(20).pods()) == ["s-0", "s-1"]
    uid = there.get("Pod", "s-1")["metadata"]["uid"]
    there.world.delete(Ref("Pod", "default", "s-1"))
    assert there.until(40).get("Pod", "s-1")["metadata"]["uid"] == uid, "its grace is not over"
    assert there.until(70).get("Pod", "s-1")["metadata"]["uid"] != uid


def test_pods_of_a_stateful_set_come_and_go_one_after_the_other() -> None:
    there = Small(node("n1")).start()
    there.world.put(workload("StatefulSet", "s", template(), replicas=3))
    assert list(there.until(1).pods()) == ["s-0"], "it is not ready yet"
    assert {phase for _, phase in there.until(60).pods().values()} == {"Running"}
    assert len(there.pods()) == 3
    there.world.edit(Ref("StatefulSet", "default", "s"), {"spec": {"replicas": 1}})
    there.until(62)
    going = [each["metadata"]["name"] for each in there.world.of("Pod") if each["metadata"].get("deletionTimestamp")]
    assert going == ["s-2"]
    assert list(there.until(150).pods()) == ["s-0"]


def test_pods_of_a_parallel_stateful_set_come_and_go_at_once() -> None:
    there = Small(node("n1")).start()
    there.world.put(workload("StatefulSet", "s", template(), replicas=3, podManagementPolicy="Parallel"))
    assert list(there.until(1).pods()) == ["s-0", "s-1", "s-2"]
    there.until(20).world.edit(Ref("StatefulSet", "default", "s"), {"spec": {"replicas": 1}})
    assert list(there.until(60).pods()) == ["s-0"]


def test_a_daemon_set_has_a_pod_on_each_node_that_it_may_be_on_and_on_those_that_come() -> None:
    there = Small(node("n1"), node("tainted", taints=[HARD])).start()
    there.world.put(workload("DaemonSet", "d", template(0)))
    assert {on for on, _ in there.until(20).pods().values()} == {"n1"}
    there.world.put(node("n2"))
    assert {on for on, _ in there.until(40).pods().values()} == {"n1", "n2"}


def test_a_daemon_set_counts_the_pods_that_it_has_already_whatever_they_are_called() -> None:
    there = Small(node("n1"), node("n2"))
    there.world.put(workload("DaemonSet", "d", template(0)))
    there.world.put(pod_of(there.get("DaemonSet", "d"), "d-x7k2p", "n1"))
    assert set(there.start().until(20).pods()) == {"d-x7k2p", "d-n2"}


def test_a_daemon_set_comes_to_a_node_once_it_is_let_in_and_only_where_its_affinity_lets_it() -> None:
    there = Small(node("n1", taints=[HARD]), node("n2")).start()
    terms = [{"matchExpressions": [{"key": names.HOSTNAME, "operator": "In", "values": ["n1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    there.world.put(workload("DaemonSet", "d", template(0, affinity={"nodeAffinity": required})))
    assert there.until(20).pods() == {}
    there.world.edit(Ref("Node", "", "n1"), {"spec": {"taints": []}})
    assert {on for on, _ in there.until(40).pods().values()} == {"n1"}


def test_the_important_and_then_the_old_are_scheduled_first() -> None:
    there = Small(node("n1", gpus=2)).start()
    for name, priority in (("old", 0), ("young", 0), ("important", 10)):
        there.world.put(pod(name, gpus=1, priority=priority))
    there.until(20)
    assert [name for name, (on, _) in there.pods().items() if on] == ["old", "important"]
    told = scheduled(there, "young")
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert told["message"] == "0/1 nodes are available: 1 resources."


def test_a_pod_that_waits_gets_the_room_that_another_leaves() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("first", gpus=8, seconds=60))
    there.until(5)
    there.world.put(pod("second", gpus=8))
    assert scheduled(there.until(30), "second")["status"] == "False"
    there.until(90)
    assert there.pods()["second"] == ("n1", "Running")
    assert scheduled(there, "second")["status"] == "True"


def test_what_waits_is_not_forgotten_when_the_what_if_is_built_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    written, is_another, _ = waves()
    assert not is_another
    for name, figure in (("_LEAST_BYTES", 6_500), ("_LEAST_BYTES_A_ROW", 0), ("_TIMES", 2)):
        monkeypatch.setattr(journal, name, figure)
    again, is_another, waited = waves()
    assert is_another, "or this would show nothing"
    assert waited == [f"p{number}" for number in range(1, 8)]
    assert again == written, "nor does anything come later, or in another order"


def waves() -> tuple[list[tuple[int, ObjectWrite]], bool, list[str]]:
    """All that is written; whether the what-if was built anew while pods waited, and which did."""
    there = Small(node("n1")).start()
    written: list[tuple[int, ObjectWrite]] = []
    there.world.subscribe(lambda each: written.append((there.stage.now, each)))
    for number in range(20):
        there.world.put(pod(f"gone-{number}", gpus=0, seconds=10, priority=number))
    first = there.until(60).stage.snapshot()
    for number in range(8):
        there.world.put(pod(f"p{number}", gpus=8, seconds=10, priority=-number))
    is_another = there.until(65).stage.snapshot() is not first
    waited = [name for name, (on, _) in there.pods().items() if not on]
    there.until(300)
    assert {phase for _, phase in there.pods().values()} == {"Succeeded"}
    return written, is_another, waited


def test_a_gated_pod_waits_for_its_gate_and_is_not_said_to_be_unschedulable() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("gated", schedulingGates=[{"name": "gpu.scheduling/claim"}]))
    assert scheduled(there.until(30), "gated")["reason"] == "SchedulingGated"
    there.world.edit(Ref("Pod", "default", "gated"), {"spec": {"schedulingGates": []}})
    assert there.until(60).pods()["gated"] == ("n1", "Running")


def test_a_node_that_is_better_avoided_is_the_last_resort_and_a_closed_one_none() -> None:
    there = Small(node("a", taints=[SOFT]), node("b"), node("c", taints=[HARD])).start()
    for name in ("first", "second", "third"):
        there.world.put(pod(name, gpus=8))
    there.until(20)
    assert {name: on for name, (on, _) in there.pods().items()} == {"first": "b", "second": "a", "third": ""}
    there.world.edit(Ref("Node", "", "c"), {"spec": {"taints": []}})
    assert there.until(40).pods()["third"][0] == "c"


def test_nobody_notices_a_death_for_a_while_and_then_its_pods_are_made_elsewhere() -> None:
    there = Small(node("n1")).start()
    there.world.put(workload("ReplicaSet", "r", template(), replicas=1))
    there.until(20)
    there.world.put(node("n2"))
    there.failures.kill("n1")
    there.until(59)
    assert not there.get("Node", "n1")["spec"]["taints"]
    there.until(61)
    assert {each["effect"] for each in there.get("Node", "n1")["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
    assert len(there.until(359).pods()) == 1, "it bears that its node is unreachable for five minutes"
    assert there.until(400).pods()["r-00002"] == ("n2", "Running")
    assert "r-00001" in there.until(3_000).pods(), "nobody can say that it has ended"
    there.world.remove(Ref("Node", "", "n1"))
    assert list(there.until(3_050).pods()) == ["r-00002"]


def test_the_same_seed_gives_the_same_writes_and_another_seed_others() -> None:
    def played(seed: int) -> list[tuple[Any, ...]]:
        there, told = Small(node("n1"), node("n2"), seed=seed), list[tuple[Any, ...]]()

        def note(written: ObjectWrite) -> None:
            told.append((there.engine.now, written.key, written.after, written.by))

        there.world.subscribe(note)
        there.start().world.put(workload("Job", "j", template(2, seconds=30), parallelism=8))
        there.until(600)
        return told

    assert played(1) == played(1)
    assert played(1) != played(2)
